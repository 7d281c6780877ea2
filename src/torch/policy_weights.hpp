#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "batchrpc/torch/policy.hpp"

namespace batchrpc::detail {

/// Parameters and buffers by their names.
using NamedTensors = std::map<std::string, at::Tensor>;
/// The types and sizes of weights.
using WeightForms = std::map<std::string, RowForm>;

[[nodiscard]] NamedTensors all_of(const ModuleState& state);
[[nodiscard]] WeightForms forms_of(const NamedTensors& weights);

/// The tensors of `weights`. Throws an InvalidArgument that lists every missing or unknown name,
/// every wrong type or shape, and every tensor with values that are not finite.
[[nodiscard]] NamedTensors checked_weights(const WeightForms& forms, const ModuleState& weights);

}  // namespace batchrpc::detail
