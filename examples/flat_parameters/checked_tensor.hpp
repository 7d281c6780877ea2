#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "common/checked_file.hpp"

namespace batchrpc_examples {

/// Writes the elements, without type and shape. Throws CheckpointError.
inline void write_tensor(CheckedFile& file, const at::Tensor& tensor) {
  const at::Tensor dense = tensor.contiguous();
  file.write(dense.data_ptr(), dense.nbytes());
}

/// Reads float32 [elements]. Throws as CheckedFile::read() does.
inline at::Tensor read_tensor(CheckedFile& file, std::int64_t elements) {
  at::Tensor tensor = at::empty({elements});
  file.read(tensor.data_ptr(), tensor.nbytes());
  return tensor;
}

}  // namespace batchrpc_examples
