#pragma once

#include <ATen/ATen.h>

#include "parameter_server/options.hpp"

namespace batchrpc_examples {

/// The flat parameters that one process gets if it computes all trainers' gradients one after the
/// other and averages them in each iteration.
at::Tensor train_alone(const ParameterServerOptions& options);

/// The largest |a - b| / |b| of all elements.
double relative_difference(const at::Tensor& a, const at::Tensor& b);

}  // namespace batchrpc_examples
