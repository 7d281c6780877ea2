#include "batchrpc/torch/module.hpp"

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <utility>
#include <vector>

#include "torch/complaints.hpp"

namespace batchrpc {
namespace {

using Tensors = std::map<std::string, at::Tensor>;
using NamedTensors = torch::OrderedDict<std::string, at::Tensor>;

Tensors detached(const NamedTensors& tensors) {
  Tensors result;
  for (const auto& item : tensors)
    result.emplace(item.key(), item.value().detach());
  return result;
}

Tensors cloned(const Tensors& tensors) {
  Tensors result;
  for (const auto& [name, tensor] : tensors)
    result.emplace(name, tensor.defined() ? tensor.detach().clone() : tensor);
  return result;
}

using Copies =
    std::vector<std::pair<at::Tensor, at::Tensor>>;  // each second tensor is copied into the first

void match(const std::string& kind, const NamedTensors& own, const Tensors& given, Copies& copies,
           detail::Complaints& complaints) {
  for (const auto& item : own) {
    const auto found = given.find(item.key());
    if (found == given.end()) {
      complaints.add(kind + " '" + item.key() + "' is missing from the state");
    } else if (!found->second.defined() || found->second.layout() != item.value().layout() ||
               found->second.sizes() != item.value().sizes()) {
      complaints.add(kind + " '" + item.key() + "' is " + detail::describe_tensor(item.value()) +
                     " in the module and " + detail::describe_tensor(found->second) +
                     " in the state");
    } else {
      copies.emplace_back(item.value(), found->second);
    }
  }
  for (const auto& [name, tensor] : given) {
    if (!own.contains(name)) complaints.add("the module has no " + kind + " '" + name + "'");
  }
}

}  // namespace

ModuleState ModuleState::clone() const { return {cloned(parameters), cloned(buffers)}; }

ModuleState state_of(const torch::nn::Module& module) {
  return {detached(module.named_parameters()), detached(module.named_buffers())};
}

void load_state(torch::nn::Module& module, const ModuleState& state) {
  Copies copies;
  detail::Complaints complaints;
  match("parameter", module.named_parameters(), state.parameters, copies, complaints);
  match("buffer", module.named_buffers(), state.buffers, copies, complaints);
  complaints.throw_if_any("the state does not fit the module");
  const c10::AutoGradMode no_grad(false);
  for (auto& [to, from] : copies)
    to.copy_(from);
}

}  // namespace batchrpc
