#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>

#include "common/checked_file.hpp"

namespace batchrpc_examples {

struct Checkpoint {
  std::int64_t iterations = 0;  ///< that the model has had
  std::int64_t servers = 1;     ///< that share the model
  std::string settings;         ///< of the training, in one line for people
  std::string history;          ///< of what gradients they were, for people
  at::Tensor values;            ///< float32 [elements]
  at::Tensor velocity;          ///< float32 [parameters]; undefined without momentum
};

/// Writes a file beside `path` and, once it is on the disk, puts it in the place of `path`. Throws
/// CheckpointError; what was there before then stays.
void write_checkpoint(const std::string& path, const Checkpoint& checkpoint);

/// Throws CheckpointError when it is not there, DamagedCheckpoint when it is not whole.
Checkpoint read_checkpoint(const std::string& path);

}  // namespace batchrpc_examples
