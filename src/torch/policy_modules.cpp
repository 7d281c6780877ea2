#include <ATen/ATen.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/nn/module.h>
#include <torch/version.h>

#include "batchrpc/base/error.hpp"
#include "torch/policy_backend.hpp"
#include "torch/policy_description.hpp"

namespace batchrpc::detail {
namespace {

/// Weights that are changed in place.
class OwnWeights {
 public:
  OwnWeights() = default;
  explicit OwnWeights(NamedTensors own) : own_(std::move(own)) {}

  [[nodiscard]] WeightForms forms() const { return forms_of(own_); }
  void prepare(const NamedTensors& weights) {
    next_.clear();
    for (const auto& [name, tensor] : own_)
      next_.emplace(name, weights.at(name).to(tensor.device()));
  }
  void apply() {
    for (auto& [name, tensor] : own_)
      tensor.copy_(next_.at(name));
    next_.clear();
  }

 private:
  NamedTensors own_;
  NamedTensors next_;
};

class EagerBackend final : public PolicyBackend {
 public:
  EagerBackend(std::shared_ptr<torch::nn::Module> module, PolicyFunction forward)
      : module_(std::move(module)),
        forward_(std::move(forward)),
        weights_(all_of(state_of(*module_))) {}

  std::vector<at::Tensor> run(const at::Tensor& observations) override {
    return forward_(observations);
  }
  void prepare(const NamedTensors& weights) override { weights_.prepare(weights); }
  void apply() override { weights_.apply(); }
  [[nodiscard]] WeightForms forms() const { return weights_.forms(); }

 private:
  const std::shared_ptr<torch::nn::Module> module_;
  const PolicyFunction forward_;
  OwnWeights weights_;
};

std::vector<at::Tensor> tensors_of(const c10::IValue& value) {
  if (value.isTensor()) return {value.toTensor()};
  if (value.isTensorList()) return value.toTensorVector();
  std::vector<at::Tensor> tensors;
  if (value.isTuple()) {
    for (const c10::IValue& element : value.toTupleRef().elements()) {
      if (!element.isTensor()) break;
      tensors.push_back(element.toTensor());
    }
    if (tensors.size() == value.toTupleRef().elements().size()) return tensors;
  }
  throw InvalidArgument(
      "a policy's forward must return a tensor, or a tuple or list of tensors, not a " +
      value.tagKind());
}

class ScriptBackend final : public PolicyBackend {
 public:
  ScriptBackend(torch::jit::Module module, bool updatable)
      : module_(std::move(module)), forward_(module_.get_method("forward")) {
    if (updatable) weights_ = OwnWeights(weights_of(module_));
  }

  std::vector<at::Tensor> run(const at::Tensor& observations) override {
    return tensors_of(forward_({observations}));
  }
  void prepare(const NamedTensors& weights) override { weights_.prepare(weights); }
  void apply() override { weights_.apply(); }
  [[nodiscard]] WeightForms forms() const { return weights_.forms(); }

 private:
  static NamedTensors weights_of(const torch::jit::Module& module) {
    NamedTensors weights;
    for (const auto& parameter : module.named_parameters())
      weights.emplace(parameter.name, parameter.value.detach());
    for (const auto& buffer : module.named_buffers())
      weights.emplace(buffer.name, buffer.value.detach());
    return weights;
  }

  torch::jit::Module module_;
  torch::jit::Method forward_;
  OwnWeights weights_;
};

torch::jit::Module prepared(torch::jit::Module module, const PolicyOptions& options) {
  module.eval();
  if (options.updatable) return module;
  torch::jit::Module frozen = torch::jit::freeze(module);
  return torch::jit::optimize_for_inference(frozen);
}

/// Compares the module's weights with its description, if it has one.
void require_updatable(const std::string& path, const std::optional<PolicyDescription>& description,
                       const WeightForms& weights) {
  if (weights.empty() || (description && !description->updatable)) {
    throw InvalidArgument(path + " is frozen: its weights are part of its code, and cannot change");
  }
  if (description && !description->weights.empty() && description->weights != weights) {
    throw InvalidArgument(path +
                          " has other weights than its description: export it again with "
                          "scripts/export_policy.py");
  }
}

}  // namespace

std::shared_ptr<Policy> make_eager_policy(std::shared_ptr<torch::nn::Module> module,
                                          PolicyFunction forward, const PolicyOptions& asked) {
  const PolicyOptions options = checked_policy_options(asked);
  if (!module) throw InvalidArgument("make_eager_policy: the module is null");
  if (options.kind.value_or(PolicyKind::eager) != PolicyKind::eager) {
    throw InvalidArgument("PolicyOptions::kind is " + std::string(to_string(*options.kind)) +
                          ", but a policy of a module is eager");
  }
  LoadedPolicy loaded;
  loaded.source = "a module";
  loaded.info.kind = PolicyKind::eager;
  loaded.info.updatable = options.updatable;
  loaded.info.observation = chosen_observation(loaded.source, std::nullopt, options);
  module->to(at::Device(options.device));
  module->eval();
  auto backend = std::make_unique<EagerBackend>(std::move(module), std::move(forward));
  loaded.info.weights = backend->forms();
  loaded.backend = std::move(backend);
  return serve_policy(std::move(loaded), options);
}

LoadedPolicy load_script_policy(const std::string& path, const PolicyOptions& options) {
  LoadedPolicy loaded;
  loaded.source = path;
  loaded.info.kind = PolicyKind::script;
  loaded.info.updatable = options.updatable;
  std::optional<RowForm> described;
  try {
    torch::jit::ExtraFilesMap extra{{kPolicyKey, ""}};
    torch::jit::Module module = torch::jit::load(path, at::Device(options.device), extra);
    std::optional<PolicyDescription> description;
    if (!extra[kPolicyKey].empty()) {
      description = parse_policy_description(path, extra[kPolicyKey]);
      described = description->observation;
      if (description->batch > 0) loaded.info.batch_sizes = {description->batch};
    }
    auto backend =
        std::make_unique<ScriptBackend>(prepared(std::move(module), options), options.updatable);
    loaded.info.weights = backend->forms();
    if (options.updatable) require_updatable(path, description, loaded.info.weights);
    loaded.backend = std::move(backend);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw InvalidArgument(path +
                          " is not a TorchScript policy that LibTorch " TORCH_VERSION " can run: " +
                          short_text(error));
  }
  loaded.info.observation = chosen_observation(path, described, options);
  return loaded;
}

}  // namespace batchrpc::detail
