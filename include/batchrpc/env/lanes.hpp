#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "batchrpc/base/export.hpp"
#include "batchrpc/transport/loop.hpp"

namespace batchrpc {

/// Work of which each lane has a share.
class BATCHRPC_EXPORT LaneTask {
 public:
  virtual ~LaneTask();
  /// The share of one lane: once for each, at the same time as those of others.
  virtual void run(std::size_t lane) noexcept = 0;
  /// How many steps a share is, for lanes whose time is virtual; asked when it begins.
  [[nodiscard]] virtual std::size_t steps() const noexcept { return 1; }
  /// When all shares are done, once, on some lane.
  virtual void done() noexcept = 0;
};

/// What steps environments in a worker: lanes, each of which steps one group at a time. By default
/// a thread (EnvWorkerOptions::lanes).
class BATCHRPC_EXPORT Lanes {
 public:
  virtual ~Lanes();

  /// How many; does not change.
  [[nodiscard]] virtual std::size_t count() const noexcept = 0;
  /// Begins a task: a lane runs its shares in the order in which tasks were given. Thread-safe;
  /// returns at once. Of a task that is not finished when the lanes end the rest is dropped.
  virtual void run(std::shared_ptr<LaneTask> task) = 0;
};

/// A thread each. Throws InvalidArgument for a count of zero, and what starting a thread throws.
[[nodiscard]] BATCHRPC_EXPORT std::unique_ptr<Lanes> thread_lanes(std::size_t count);

/// In the time of `loop`, on its thread and with no threads of their own: a share takes effect when
/// it begins, and takes as long as `time(lane)` says for each of its steps. For programs in a
/// SimulatedWorld, with its loop(), which goes on when a host is killed. Throws InvalidArgument for
/// a count of zero.
[[nodiscard]] BATCHRPC_EXPORT std::unique_ptr<Lanes> timed_lanes(
    std::size_t count, std::shared_ptr<Loop> loop, std::function<Duration(std::size_t lane)> time);

}  // namespace batchrpc
