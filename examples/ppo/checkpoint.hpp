#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/checked_file.hpp"
#include "common/folder_lock.hpp"
#include "common/numbered_files.hpp"

namespace batchrpc_examples::ppo {

/// Everything that a training needs to continue, between two updates, as if it had not ended.
struct Checkpoint {
  std::int64_t version = 0;  ///< number of updates so far
  std::string settings;      ///< training_settings() of the training that it belongs to
  std::string state;         ///< counters, statistics and the learning curve, as JSON
  std::string sampler;       ///< LocalSampler::state()
  at::Tensor weights;        ///< float32 [parameters], like the optimizer's tensors
  at::Tensor mean;
  at::Tensor square;
};

/// Throws CheckpointError; the old file at `path` then stays.
void write_checkpoint(const std::string& path, const Checkpoint& checkpoint);
/// Throws CheckpointError if the file does not exist, and DamagedCheckpoint if it is not complete.
Checkpoint read_checkpoint(const std::string& path);

/// The last three checkpoints of a training, in a folder.
class CheckpointFolder {
 public:
  static constexpr std::size_t kKept = 3;

  /// Creates the folder if it does not exist, and removes incomplete files. Throws CheckpointError,
  /// also if another CheckpointFolder, in any process, uses the folder.
  explicit CheckpointFolder(const std::string& folder);

  /// The newest complete checkpoint, if there is any. Reports newer, damaged ones to `notice` and
  /// adds ".damaged" to their names. Throws CheckpointError if the checkpoint belongs to a training
  /// with other settings, or if all checkpoints are damaged.
  [[nodiscard]] std::optional<Checkpoint> newest(
      const std::string& settings, const std::function<void(const std::string&)>& notice) const;
  /// Throws CheckpointError. The version must be at least 1.
  void write(const Checkpoint& checkpoint) const;

  [[nodiscard]] std::string path(std::int64_t version) const { return files_.path(version); }

 private:
  NumberedFiles files_;
  FolderLock lock_;
};

}  // namespace batchrpc_examples::ppo
