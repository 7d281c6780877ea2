#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "batchrpc/torch/policy.hpp"

namespace batchrpc::detail {

/// Parameters and buffers alike, by their names.
using NamedTensors = std::map<std::string, at::Tensor>;
/// What they are.
using WeightForms = std::map<std::string, RowForm>;

[[nodiscard]] NamedTensors all_of(const ModuleState& state);
[[nodiscard]] WeightForms forms_of(const NamedTensors& weights);

/// The tensors of `weights`, unless they are others than `forms` names, of other types or shapes,
/// or have values that are not finite: throws InvalidArgument that tells of each.
[[nodiscard]] NamedTensors checked_weights(const WeightForms& forms, const ModuleState& weights);

}  // namespace batchrpc::detail
