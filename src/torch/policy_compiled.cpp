#include <ATen/ATen.h>
#include <ATen/Version.h>
#include <c10/core/DeviceGuard.h>
#include <torch/version.h>

#include "batchrpc/base/error.hpp"
#include "torch/device.hpp"
#include "torch/policy_backend.hpp"
#include "torch/policy_description.hpp"
#include "torch/policy_turns.hpp"

// From LibTorch 2.10 on, a package's description can be read before its code is loaded.
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 10)
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>

namespace batchrpc::detail {
namespace {

using Loader = torch::inductor::AOTIModelPackageLoader;

constexpr const char* kModel = "model";

PolicyDescription describe_package(const std::string& path) {
  std::unordered_map<std::string, std::string> metadata;
  try {
    metadata = Loader::load_metadata_from_package(path, kModel);
  } catch (const std::exception& error) {
    throw InvalidArgument(path + " is not a package of AOTInductor: " + short_text(error));
  }
  const auto found = metadata.find(kPolicyKey);
  if (found == metadata.end()) {
    throw InvalidArgument(path +
                          " does not describe itself as a policy: export it with "
                          "scripts/export_policy.py");
  }
  PolicyDescription description = parse_policy_description(path, found->second);
  require_made_for(path, description, TORCH_VERSION, at::get_cpu_capability());
  return description;
}

/// Throws if weights have become part of the code: compilers do that with small weights unless told
/// otherwise. (The unused counters of batch norm may be missing.)
void require_constants(const std::string& path, Loader& loader, const WeightForms& weights) {
  const std::vector<std::string> names = loader.get_constant_fqns();
  for (const auto& [name, form] : weights) {
    if (!c10::isFloatingType(form.type)) continue;
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    throw InvalidArgument(path + " is marked as updatable, but '" + name +
                          "' is part of its code: export it with always_keep_tensor_constants, as "
                          "scripts/export_policy.py does");
  }
}

/// Returns a dense copy with a storage of its own. A package copies the whole storage of a
/// constant, even if the constant is a small part of it, and would write beyond the constant's
/// place.
at::Tensor alone(const at::Tensor& weight) {
  const at::Tensor dense = weight.detach().contiguous();
  return dense.storage().nbytes() == dense.nbytes() ? dense : dense.clone();
}

class CompiledBackend final : public PolicyBackend {
 public:
  void add(const std::string& path, std::size_t batch, const WeightForms& weights,
           const PolicyOptions& options) {
    // Packages make their device the current one, and use whichever device is current.
    const c10::DeviceGuard on(device_);
    const bool one_at_a_time = options.cuda_graphs;  // work that synchronizes cannot be recorded
    try {
      auto loader =
          std::make_unique<Loader>(path, kModel, one_at_a_time, options.replicas, device_.index());
      const std::string made_for = loader->get_metadata()["AOTI_DEVICE_KEY"];
      if (!made_for.empty() && !options.device.starts_with(made_for)) {
        throw InvalidArgument(path + " is compiled for '" + made_for +
                              "'', but PolicyOptions::device is '" + options.device + "'");
      }
      if (options.updatable) require_constants(path, *loader, weights);
      packages_.emplace(batch, std::move(loader));
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      throw InvalidArgument(path + " cannot be loaded: " + short_text(error));
    }
  }

  std::vector<at::Tensor> run(const at::Tensor& observations) override {
    // Limits the callers to the number of models in the package. With more of them, LibTorch before
    // 2.13 lets some wait for each other for ever after an update.
    const std::lock_guard turn(turns_);
    const c10::DeviceGuard on(device_);
    auto package = packages_.begin();
    if (package->first != 0)
      package = packages_.find(static_cast<std::size_t>(observations.size(0)));
    return package->second->run({observations});
  }

  void prepare(const NamedTensors& weights) override {
    const c10::DeviceGuard on(device_);
    for (const auto& [batch, loader] : packages_) {
      std::unordered_map<std::string, at::Tensor> constants;  // unused ones are not in it
      for (const std::string& name : loader->get_constant_fqns()) {
        const auto found = weights.find(name);
        if (found != weights.end()) constants.emplace(name, alone(found->second).to(device_));
      }
      const bool inactive = true;
      const bool all = true;
      // The package copies on the default stream. LibTorch before 2.14 does not wait for that.
      wait_for_stream(device_);
      loader->load_constants(constants, inactive, all);
      wait_for_default_stream(device_);
    }
  }
  void apply() override {
    for (const auto& [batch, loader] : packages_)
      loader->get_runner()->swap_constant_buffer();
  }

  CompiledBackend(const at::Device& device, std::size_t replicas)
      : device_(device), turns_(replicas) {}

 private:
  const at::Device device_;
  PolicyTurns turns_;
  std::map<std::size_t, std::unique_ptr<Loader>> packages_;  // by batch size; 0: any size
};

void require_same(const std::string& path, const PolicyDescription& one,
                  const std::string& other_path, const PolicyDescription& other) {
  if (one.observation != other.observation || one.updatable != other.updatable ||
      one.weights != other.weights) {
    throw InvalidArgument(
        path + " and " + other_path +
        " belong to different policies: a folder may hold only one policy's packages");
  }
  if (one.state != other.state) {
    throw InvalidArgument(path + " and " + other_path +
                          " have different weights: export all packages of a folder at "
                          "once, into an empty one");
  }
  if (one.batch == other.batch || one.batch == 0 || other.batch == 0) {
    throw InvalidArgument(
        path + " and " + other_path +
        " are for the same batch size: a folder may have one package for each size, or one "
        "for any");
  }
}

}  // namespace

LoadedPolicy load_compiled_policy(const std::vector<std::string>& paths,
                                  const PolicyOptions& options) {
  if (options.updatable && options.cuda_graphs) {
    throw InvalidArgument(
        paths.front() +
        ": PolicyOptions::cuda_graphs and PolicyOptions::updatable cannot be combined for a "
        "package: load TorchScript with CUDA graphs, or a package without them");
  }
  LoadedPolicy loaded;
  loaded.source = paths.front();
  std::vector<PolicyDescription> descriptions;
  for (const std::string& path : paths) {
    PolicyDescription description = describe_package(path);
    for (std::size_t other = 0; other < descriptions.size(); ++other)
      require_same(path, description, paths[other], descriptions[other]);
    if (description.batch > 0) loaded.info.batch_sizes.push_back(description.batch);
    descriptions.push_back(std::move(description));
  }
  const PolicyDescription& first = descriptions.front();
  if (options.updatable && !first.updatable) {
    throw InvalidArgument(
        paths.front() +
        " is frozen: to change weights, load a package from the folder 'updatable'");
  }
  std::sort(loaded.info.batch_sizes.begin(), loaded.info.batch_sizes.end());
  loaded.info.kind = PolicyKind::compiled;
  loaded.info.updatable = options.updatable;
  loaded.info.observation = chosen_observation(paths.front(), first.observation, options);
  loaded.info.weights = first.weights;
  auto backend = std::make_unique<CompiledBackend>(at::Device(options.device), options.replicas);
  for (std::size_t i = 0; i < paths.size(); ++i)
    backend->add(paths[i], descriptions[i].batch, first.weights, options);
  loaded.backend = std::move(backend);
  return loaded;
}

}  // namespace batchrpc::detail

#else

namespace batchrpc::detail {

LoadedPolicy load_compiled_policy(const std::vector<std::string>& paths,
                                  const PolicyOptions& /*options*/) {
  throw InvalidArgument(paths.front() +
                        " is a package of AOTInductor, which LibTorch " TORCH_VERSION
                        " does not run: build batchrpc with LibTorch 2.10 or later "
                        "(scripts/setup.sh --torch2), or load TorchScript (.pt)");
}

}  // namespace batchrpc::detail

#endif
