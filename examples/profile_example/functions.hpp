#pragma once

#include <ATen/core/Tensor.h>

namespace batchrpc_examples {

/// A function of the program that uses operators: the sum of two random tensors.
at::Tensor function_with_operators();

/// Runs ten rounds of mul, add, relu and sigmoid on a 100 x 100 tensor.
at::Tensor heavy_function(const at::Tensor& start);

/// Blocks its thread for `milliseconds`, like a function that waits for a file.
void waiting_function(int milliseconds);

}  // namespace batchrpc_examples
