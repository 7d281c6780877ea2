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

/// All that a training needs to go on as if it had not ended, between two updates.
struct Checkpoint {
  std::int64_t version = 0;  ///< updates that there have been
  std::string settings;      ///< training_settings(): of the training that it belongs to
  std::string state;         ///< counters, statistics and the learning curve, as JSON
  std::string sampler;       ///< LocalSampler::state()
  at::Tensor weights;        ///< float32 [parameters], and so the optimizer's
  at::Tensor mean;
  at::Tensor square;
};

/// Throws CheckpointError; what was at `path` before then stays.
void write_checkpoint(const std::string& path, const Checkpoint& checkpoint);
/// Throws CheckpointError when it is not there, DamagedCheckpoint when it is not whole.
Checkpoint read_checkpoint(const std::string& path);

/// The checkpoints of a training in a folder: the last three.
class CheckpointFolder {
 public:
  static constexpr std::size_t kKept = 3;

  /// Makes the folder if it is not there, and removes what was not written to its end. Throws
  /// CheckpointError, also while there is another CheckpointFolder of it, in whatever process.
  explicit CheckpointFolder(const std::string& folder);

  /// The newest one that is whole, if there is any. `notice` is told of newer ones that are not,
  /// to whose names ".damaged" is added. Throws CheckpointError when it is of a training with
  /// other settings, and when there are checkpoints but none is whole.
  [[nodiscard]] std::optional<Checkpoint> newest(
      const std::string& settings, const std::function<void(const std::string&)>& notice) const;
  /// Throws CheckpointError. Its version is at least 1.
  void write(const Checkpoint& checkpoint) const;

  [[nodiscard]] std::string path(std::int64_t version) const { return files_.path(version); }

 private:
  NumberedFiles files_;
  FolderLock lock_;
};

}  // namespace batchrpc_examples::ppo
