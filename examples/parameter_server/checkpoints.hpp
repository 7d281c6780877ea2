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

/// Iterations of which each server has a checkpoint, by its name.
using Restorable = std::map<std::string, std::vector<std::int64_t>>;

/// The newest from which all can go on: 0, the beginning, when none has a checkpoint. Throws
/// CheckpointError, which tells what each has, when they have none in common; also when a server
/// has none at all: whether it never wrote one, or has lost it, cannot be told.
std::int64_t newest_common(const Restorable& restorable);

/// The checkpoints of one server in a folder: the last two, for servers that are killed together
/// may be an iteration apart. Thread-safe, but restore().
class Checkpoints {
 public:
  /// For a process with a rank, and a folder.
  explicit Checkpoints(const ParameterServerOptions& options);

  /// Of the checkpoints that there are. People are told of those that are damaged, which do not
  /// count. Throws CheckpointError when one is of another training, and when all are damaged.
  [[nodiscard]] std::vector<std::int64_t> restorable() const;

  /// Reads the checkpoint of that iteration, none of 0, and removes newer ones, of which people are
  /// told, and what was not written to its end. Throws CheckpointError.
  std::optional<Checkpoint> restore(std::int64_t iterations, std::int64_t elements,
                                    std::int64_t parameters);

  /// After an update that finishes an iteration: writes a checkpoint if it is time. What goes wrong
  /// is kept for error(), and told to people unless it was the last.
  void updated(const UpdateReport& update, const SharedModel& model);
  /// The training is over after so many: writes the last one, if it is not there.
  void finish(std::int64_t iterations, const SharedModel& model);

  /// Why the last one was not written; empty: it was.
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
