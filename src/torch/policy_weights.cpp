#include "torch/policy_weights.hpp"

#include <ATen/ATen.h>

#include "torch/complaints.hpp"

namespace batchrpc::detail {
namespace {

bool is_finite(const at::Tensor& tensor) {
  return (!tensor.is_floating_point() && !tensor.is_complex()) ||
         at::isfinite(tensor).all().item<bool>();
}

RowForm form_of(const at::Tensor& tensor) { return {tensor.scalar_type(), tensor.sizes().vec()}; }

}  // namespace

NamedTensors all_of(const ModuleState& state) {
  NamedTensors all = state.parameters;
  all.insert(state.buffers.begin(), state.buffers.end());
  return all;
}

WeightForms forms_of(const NamedTensors& weights) {
  WeightForms forms;
  for (const auto& [name, tensor] : weights)
    forms.emplace(name, form_of(tensor));
  return forms;
}

NamedTensors checked_weights(const WeightForms& forms, const ModuleState& weights) {
  NamedTensors given = all_of(weights);
  Complaints complaints;
  for (const auto& [name, form] : forms) {
    const auto found = given.find(name);
    if (found == given.end()) {
      complaints.add("'" + name + "' is missing");
    } else if (!found->second.defined() || found->second.layout() != c10::kStrided ||
               form_of(found->second) != form) {
      complaints.add("'" + name + "' is " + to_string(form) + " in the policy, but " +
                     describe_tensor(found->second) + " in the update");
    } else if (!is_finite(found->second)) {
      complaints.add("'" + name + "' has values that are not finite (NaN or infinite)");
    }
  }
  for (const auto& [name, tensor] : given) {
    if (!forms.contains(name)) complaints.add("the policy has no '" + name + "'");
  }
  for (const auto& [name, tensor] : weights.buffers) {
    if (weights.parameters.contains(name))
      complaints.add("'" + name + "' is both a parameter and a buffer");
  }
  complaints.throw_if_any("the weights do not fit the policy, which keeps its present weights");
  return given;
}

}  // namespace batchrpc::detail
