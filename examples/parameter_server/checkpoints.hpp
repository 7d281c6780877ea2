#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/numbered_files.hpp"
#include "parameter_server/checkpoint.hpp"
#include "parameter_server/options.hpp"

namespace batchrpc_examples {

/// The iterations of which each server has a checkpoint, by server name.
using Restorable = std::map<std::string, std::vector<std::int64_t>>;

/// The newest iteration from which all servers can continue; 0, the beginning, if none has a
/// checkpoint. Throws a CheckpointError that lists each server's iterations if they have none in
/// common. That includes a server without any: it may have lost its checkpoints.
std::int64_t newest_common(const Restorable& restorable);

/// The checkpoints of one server in a folder. It keeps the last two, because servers that are
/// killed together may be one iteration apart. Thread-safe, except restore().
class Checkpoints {
 public:
  /// For a process with a rank and a checkpoint folder.
  explicit Checkpoints(const ParameterServerOptions& options);

  /// The iterations of the existing checkpoints. Damaged ones are reported and do not count. Throws
  /// CheckpointError if one belongs to another training, or if all are damaged.
  [[nodiscard]] std::vector<std::int64_t> restorable() const;

  /// Reads the checkpoint of that iteration; nothing for 0. Removes newer checkpoints, which it
  /// reports, and incomplete files. Throws CheckpointError.
  std::optional<Checkpoint> restore(std::int64_t iterations, std::int64_t elements,
                                    std::int64_t parameters);

  /// Called after an update that finishes an iteration: writes a checkpoint if it is time. A
  /// failure is kept for error(), and reported unless it was the last checkpoint.
  void updated(const UpdateReport& update, const SharedModel& model);
  /// The training has ended after that many iterations: writes the last checkpoint if it does not
  /// exist yet.
  void finish(std::int64_t iterations, const SharedModel& model);

  /// Why the last checkpoint was not written; empty if it was.
  [[nodiscard]] std::string error() const;

 private:
  [[nodiscard]] Checkpoint read(std::int64_t iterations) const;
  void forget_after(std::int64_t iterations) const;
  void write(std::int64_t iterations, const SharedModel& model, bool is_last);

  const NumberedFiles files_;
  const std::string server_;
  const std::string settings_;
  const std::int64_t servers_;
  const std::int64_t every_;
  const std::int64_t iterations_;
  const std::int64_t trainers_;
  mutable std::mutex mutex_;
  std::int64_t last_ = 0;
  std::string history_;
  std::string error_;
};

}  // namespace batchrpc_examples
