#include "batchrpc/torch/policy.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string_view>

#include "batchrpc/base/error.hpp"
#include "batchrpc/torch/tensor_header.hpp"
#include "torch/batch_plan.hpp"
#include "torch/device.hpp"
#include "torch/policy_backend.hpp"
#include "torch/policy_description.hpp"
#include "torch/policy_gate.hpp"
#include "torch/policy_graphs.hpp"

namespace batchrpc {

namespace detail {
namespace {

std::int64_t as_size(std::size_t size) { return static_cast<std::int64_t>(size); }

/// Gives each output its own memory. An output may be a view of weights, which change later, of the
/// caller's observations, or of something larger; or it may be one of these tensors itself.
void make_own(std::vector<at::Tensor>& outputs) {
  for (at::Tensor& output : outputs) {
    const bool sole = output.use_count() == 1 && output.storage().use_count() == 1;
    if (output.is_cpu() && !sole) output = output.clone();
    output = output.cpu();
  }
}

class ServedPolicy final : public Policy {
 public:
  ServedPolicy(LoadedPolicy loaded, std::uint64_t version)
      : backend_(std::move(loaded.backend)),
        info_(std::move(loaded.info)),
        source_(std::move(loaded.source)),
        device_(info_.device),
        version_(version) {}

  /// Call it before another thread has the policy.
  void warm_up(std::vector<std::size_t> sizes) {
    if (!info_.batch_sizes.empty()) sizes = info_.batch_sizes;
    for (const std::size_t size : sizes) {
      std::vector<std::int64_t> shape{as_size(size)};
      shape.insert(shape.end(), info_.observation.sizes.begin(), info_.observation.sizes.end());
      try {
        const at::Tensor observations = at::zeros(shape, info_.observation.type);
        for (int run = 0; run < kWarmUpRuns; ++run)
          note_outputs(forward(observations));
      } catch (const Error&) {
        throw;
      } catch (const std::exception& error) {
        throw InvalidArgument(source_ + " failed to run with " + std::to_string(size) +
                              " rows of " + to_string(info_.observation) + ": " +
                              short_text(error));
      }
    }
  }

  PolicyOutput forward(const at::Tensor& observations) override {
    require_observations(observations);
    const c10::AutoGradMode no_grad(false);
    at::internal::lazy_init_num_threads();  // compiled code starts OpenMP threads itself
    const at::Tensor rows = observations.to(device_).contiguous();
    PolicyOutput output;
    {
      const std::shared_lock running(gate_);
      output.version = version_;
      output.tensors = run(rows);
      make_own(output.tensors);
    }
    return output;
  }

  void update(const ModuleState& weights, std::uint64_t version) override {
    if (!info_.updatable) {
      throw InvalidArgument(
          "the policy of " + source_ + " is frozen, so its weights cannot change: " +
          (info_.kind == PolicyKind::compiled ? "load a package from the folder 'updatable', with "
                                              : "load it with ") +
          "PolicyOptions::updatable");
    }
    const c10::AutoGradMode no_grad(false);
    const NamedTensors checked = checked_weights(info_.weights, weights);
    const std::lock_guard updating(update_);
    if (version <= version_) {
      throw InvalidArgument("weights of version " + std::to_string(version) +
                            " were given to a policy that has version " + std::to_string(version_) +
                            ": each update needs a higher version");
    }
    backend_->prepare(checked);
    const std::lock_guard alone(gate_);
    backend_->apply();
    wait_for_stream(device_);  // the next batch may run on another stream
    version_ = version;
  }

  [[nodiscard]] std::uint64_t version() const override { return version_; }
  [[nodiscard]] const PolicyInfo& info() const override { return info_; }

 private:
  void require_observations(const at::Tensor& observations) const {
    const auto& sizes = info_.observation.sizes;
    const bool fits = observations.defined() && observations.layout() == c10::kStrided &&
                      observations.scalar_type() == info_.observation.type &&
                      observations.dim() == as_size(sizes.size()) + 1 && observations.size(0) > 0 &&
                      std::equal(sizes.begin(), sizes.end(), observations.sizes().begin() + 1);
    if (fits) return;
    throw InvalidArgument("observations are " + describe_tensor(observations) +
                          ", but the policy of " + source_ + " takes a batch of at least one " +
                          to_string(info_.observation));
  }

  std::vector<at::Tensor> run(const at::Tensor& rows) const {
    const auto count = static_cast<std::size_t>(rows.size(0));
    const auto& sizes = info_.batch_sizes;
    if (sizes.empty() || std::binary_search(sizes.begin(), sizes.end(), count)) {
      return run_batch(rows);
    }
    std::vector<std::vector<at::Tensor>> parts;  // one list for each output
    std::int64_t first = 0;
    for (const std::size_t size : plan_batches(count, sizes)) {
      const std::int64_t real = std::min(as_size(size), rows.size(0) - first);
      const std::vector<at::Tensor> outputs =
          run_batch(padded(rows.narrow(0, first, real), as_size(size)));
      parts.resize(outputs.size());
      for (std::size_t i = 0; i < outputs.size(); ++i)
        parts[i].push_back(outputs[i].narrow(0, 0, real));
      first += real;
    }
    std::vector<at::Tensor> joined;
    joined.reserve(parts.size());
    for (const auto& part : parts)
      joined.push_back(at::cat(part));
    return joined;
  }

  /// Pads the batch with copies of the last row.
  static at::Tensor padded(const at::Tensor& rows, std::int64_t size) {
    const std::int64_t missing = size - rows.size(0);
    if (missing == 0) return rows;
    std::vector<std::int64_t> shape = rows.sizes().vec();
    shape[0] = missing;
    return at::cat({rows, rows.narrow(0, rows.size(0) - 1, 1).expand(shape)});
  }

  std::vector<at::Tensor> run_batch(const at::Tensor& rows) const {
    std::vector<at::Tensor> outputs = backend_->run(rows);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const at::Tensor& output = outputs[i];
      if (output.defined() && output.dim() > 0 && output.size(0) == rows.size(0)) continue;
      throw InvalidArgument("output " + std::to_string(i) + " of the policy of " + source_ +
                            " is " + describe_tensor(output) + " for " +
                            std::to_string(rows.size(0)) +
                            " observations: it must have one row for each");
    }
    if (outputs.empty()) throw InvalidArgument("the policy of " + source_ + " has no outputs");
    return outputs;
  }

  void note_outputs(const PolicyOutput& output) {
    std::vector<RowForm> forms;
    for (const at::Tensor& tensor : output.tensors)
      forms.push_back({tensor.scalar_type(), tensor.sizes().slice(1).vec()});
    if (info_.outputs.empty()) info_.outputs = forms;
    if (forms != info_.outputs) {
      throw InvalidArgument("the policy of " + source_ +
                            " has different outputs for different batch sizes");
    }
  }

  const std::unique_ptr<PolicyBackend> backend_;
  PolicyInfo info_;
  const std::string source_;
  const at::Device device_;
  std::atomic<std::uint64_t> version_;  // changes only while both of these are held
  std::mutex update_;
  PolicyGate gate_;
};

}  // namespace

PolicyOptions checked_policy_options(PolicyOptions options) {
  const auto require = [](bool fits, const std::string& what) {
    if (!fits) throw InvalidArgument("PolicyOptions::" + what);
  };
  require(options.replicas >= 1 && options.replicas <= kMostReplicas,
          "replicas is " + std::to_string(options.replicas) + ", but must be from 1 to " +
              std::to_string(kMostReplicas));
  require(!options.warm_up.empty(), "warm_up is empty: name a batch size to warm up with");
  for (const std::size_t size : options.warm_up) {
    require(size >= 1 && size <= kLargestPolicyBatch, "warm_up has " + std::to_string(size) +
                                                          ", but batch sizes must be from 1 to " +
                                                          std::to_string(kLargestPolicyBatch));
  }
  options.device = device_of("PolicyOptions::device", options.device).str();
  if (options.cuda_graphs) options.replicas = 1;  // graphs run one at a time
  return options;
}

std::vector<std::size_t> served_sizes(const PolicyInfo& info, const PolicyOptions& options) {
  if (!info.batch_sizes.empty() || !options.cuda_graphs) return info.batch_sizes;
  const std::set<std::size_t> sizes(options.warm_up.begin(), options.warm_up.end());
  return {sizes.begin(), sizes.end()};
}

RowForm chosen_observation(const std::string& source, const std::optional<RowForm>& described,
                           const PolicyOptions& options) {
  if (!described && !options.observation) {
    throw InvalidArgument(source +
                          " does not describe its observations: set "
                          "PolicyOptions::observation");
  }
  if (described && options.observation && *described != *options.observation) {
    throw InvalidArgument(source + " takes observations of " + to_string(*described) +
                          ", but PolicyOptions::observation is " + to_string(*options.observation));
  }
  return described ? *described : *options.observation;
}

std::shared_ptr<Policy> serve_policy(LoadedPolicy loaded, const PolicyOptions& options) {
  loaded.info.device = options.device;
  loaded.info.replicas = options.replicas;
  if (!loaded.info.updatable) loaded.info.weights.clear();
  loaded.info.batch_sizes = served_sizes(loaded.info, options);
  if (options.cuda_graphs) loaded = with_cuda_graphs(std::move(loaded));
  auto policy = std::make_shared<ServedPolicy>(std::move(loaded), options.version);
  policy->warm_up(options.warm_up);
  return policy;
}

std::string short_text(const std::exception& error) {
  const auto* const of_torch = dynamic_cast<const c10::Error*>(&error);
  std::string text = of_torch != nullptr ? of_torch->what_without_backtrace() : error.what();
  const std::string_view last =
      "\nRuntimeError: ";  // TorchScript puts it after the place where the error was thrown
  if (const std::size_t at = text.rfind(last); at != text.npos) text.erase(0, at + last.size());
  return text.substr(0, text.find('\n'));
}

}  // namespace detail

Policy::~Policy() = default;

const char* to_string(PolicyKind kind) noexcept {
  switch (kind) {
    case PolicyKind::eager:
      return "eager";
    case PolicyKind::script:
      return "script";
    case PolicyKind::compiled:
      return "compiled";
  }
  return "unknown";
}

std::string to_string(const RowForm& form) {
  return detail::describe_type(form.type) + " " + detail::describe_shape(form.sizes);
}

}  // namespace batchrpc
