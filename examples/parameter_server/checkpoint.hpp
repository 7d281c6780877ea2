#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>

#include "common/checked_file.hpp"

namespace batchrpc_examples {

struct Checkpoint {
  std::int64_t iterations = 0;  ///< iterations that the model has had
  std::int64_t servers = 1;     ///< servers that share the model
  std::string settings;         ///< settings of the training, as one line of text
  std::string history;          ///< whose gradients the model has had, as text
  at::Tensor values;            ///< float32 [elements]
  at::Tensor velocity;          ///< float32 [parameters]; undefined without momentum
};

/// Writes a file next to `path` and, once it is on the disk, replaces `path` by it. Throws
/// CheckpointError; the old file then stays.
void write_checkpoint(const std::string& path, const Checkpoint& checkpoint);

/// Throws CheckpointError if the file does not exist, and DamagedCheckpoint if it is not complete.
Checkpoint read_checkpoint(const std::string& path);

}  // namespace batchrpc_examples
