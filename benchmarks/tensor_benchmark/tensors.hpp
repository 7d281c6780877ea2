#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace tensor_benchmark {

/// A matrix of floats of `bytes` bytes, as square as possible, with no two equal elements in a row.
/// With `contiguous` false, its transposed view, whose elements are not in memory order.
at::Tensor make_tensor(std::uint64_t bytes, bool contiguous);

}  // namespace tensor_benchmark
