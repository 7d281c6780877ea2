#include "actor_critic/network.hpp"

#include <torch/csrc/jit/serialization/import.h>
#include <torch/torch.h>

#include <cmath>
#include <stdexcept>
#include <string>

namespace actor_critic {

void initialize_orthogonally(Network& network) {
  const torch::NoGradGuard no_grad;
  for (auto& parameter : network.named_parameters()) {
    const std::string& name = parameter.key();
    if (name.ends_with("bias")) {
      torch::nn::init::zeros_(parameter.value());
    } else {
      const double gain = name == "policy.weight"  ? .01
                          : name == "value.weight" ? 1
                                                   : std::sqrt(2.);
      torch::nn::init::orthogonal_(parameter.value(), gain);
    }
  }
}

torch::jit::Module script_of(const Network& network) {
  torch::jit::Module script("Policy");
  for (const auto& layer : network.named_children()) {
    torch::jit::Module part("Layer_" + layer.key());
    for (const auto& parameter : layer.value()->named_parameters())
      part.register_parameter(parameter.key(), parameter.value(), false);
    script.register_module(layer.key(), part);
  }
  script.define(network.script());
  script.eval();
  return script;
}

void save_script(const Network& network, const std::string& path) {
  const batchrpc::RowForm form = network.observation();
  std::string description = "format 1\ntorch " TORCH_VERSION "\nbatch any\nweights updatable\n";
  description += "observation " + batchrpc::to_string(form) + "\n";
  script_of(network).save(path, {{"batchrpc_policy", description}});
}

void load_weights(Network& network, const std::string& script_path) {
  batchrpc::ModuleState state;
  torch::jit::Module script;
  try {
    script = torch::jit::load(script_path);
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    throw std::runtime_error(script_path +
                             " cannot be read as TorchScript: " + text.substr(0, text.find('\n')));
  }
  for (const auto& parameter : script.named_parameters())
    state.parameters.emplace(parameter.name, parameter.value);
  batchrpc::load_state(network, state);
}

}  // namespace actor_critic
