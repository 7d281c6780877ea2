#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace tensor_benchmark {

/// A matrix of so many bytes of floats, no two of a row alike, as square as can be; `contiguous`
/// false: the transposed view of one, whose elements are not in the order of memory.
at::Tensor make_tensor(std::uint64_t bytes, bool contiguous);

}  // namespace tensor_benchmark
