#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace batchrpc_examples {

/// A checkpoint cannot be written, or read, or is of another training: `what()` names the file.
class CheckpointError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Checkpoint {
  std::int64_t iterations = 0;  ///< that the model has had
  at::Tensor values;            ///< float32 [elements]
  at::Tensor velocity;          ///< float32 [parameters]; undefined without momentum
  std::string history;          ///< of what gradients they were, for people
};

/// Writes a file beside `path` and, once it is on the disk, puts it in the place of `path`. Throws
/// CheckpointError; what was there before then stays. `settings` are one line for people.
void write_checkpoint(const std::string& path, const std::string& settings,
                      const Checkpoint& checkpoint);

/// Throws CheckpointError when it is not there, damaged, or not of these settings and these sizes
/// of values and velocity.
Checkpoint read_checkpoint(const std::string& path, const std::string& settings,
                           std::int64_t elements, std::int64_t parameters);

}  // namespace batchrpc_examples
