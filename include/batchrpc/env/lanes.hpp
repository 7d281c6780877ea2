#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "batchrpc/base/export.hpp"
#include "batchrpc/transport/loop.hpp"

namespace batchrpc {

/// Work that is divided into one share for each lane.
class BATCHRPC_EXPORT LaneTask {
 public:
  virtual ~LaneTask();
  /// Runs one lane's share: called once for each lane, concurrently with the others.
  virtual void run(std::size_t lane) noexcept = 0;
  /// The number of steps in a share, for lanes in virtual time. Called when the share begins.
  [[nodiscard]] virtual std::size_t steps() const noexcept { return 1; }
  /// Called once, on one of the lanes, when all shares are done.
  virtual void done() noexcept = 0;
};

/// The lanes of a worker: each steps one group of environments at a time. By default there is one,
/// a thread (EnvWorkerOptions::lanes).
class BATCHRPC_EXPORT Lanes {
 public:
  virtual ~Lanes();

  /// The number of lanes. It never changes.
  [[nodiscard]] virtual std::size_t count() const noexcept = 0;
  /// Starts a task and returns at once; each lane runs its shares in the order of the tasks.
  /// Thread-safe. When the lanes end, the rest of an unfinished task is dropped.
  virtual void run(std::shared_ptr<LaneTask> task) = 0;
};

/// Makes lanes that are threads. Throws InvalidArgument for a count of zero, and the error if a
/// thread cannot be started.
[[nodiscard]] BATCHRPC_EXPORT std::unique_ptr<Lanes> thread_lanes(std::size_t count);

/// Makes lanes in the virtual time of `loop`, on its thread and without threads of their own. A
/// share takes effect when it begins, and takes `time(lane)` for each of its steps. For programs in
/// a SimulatedWorld, with its loop(), which continues when a host is killed. Throws InvalidArgument
/// for a count of zero.
[[nodiscard]] BATCHRPC_EXPORT std::unique_ptr<Lanes> timed_lanes(
    std::size_t count, std::shared_ptr<Loop> loop, std::function<Duration(std::size_t lane)> time);

}  // namespace batchrpc
