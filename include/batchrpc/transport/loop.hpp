#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "batchrpc/base/executor.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/future/wait.hpp"

namespace batchrpc {

namespace detail {
class TickCounter;
}

/// Names a task that was scheduled; 0 names none.
using TimerId = std::uint64_t;

/// What a node lives in: time, deferred work, and the waiting of threads. One thread at a time
/// drives a loop: it polls the transports of the loop and runs what was posted, in order. Which
/// thread that is changes: the node's I/O thread, or a thread that waits for a future
/// (docs/threading.md). Several threads that run an embedder's io_context take turns at it.
///
/// All functions are thread-safe. Implementations: `SocketLoop` (sockets, real time), `VirtualLoop`
/// (tests).
class BATCHRPC_EXPORT Loop : public WaitContext, public Executor {
 public:
  ~Loop() override;

  /// now(), cheaper, and up to 10 ms behind: for what happens at every message.
  [[nodiscard]] virtual TimePoint coarse_now() const noexcept { return now(); }
  /// How far behind that may be.
  [[nodiscard]] virtual Duration coarse_lag() const noexcept { return Duration::zero(); }

  /// For measuring how long something took, at every message: cheaper than now(), of a unit and a
  /// beginning of its own, on any thread.
  [[nodiscard]] virtual std::uint64_t ticks() const noexcept {
    return static_cast<std::uint64_t>(now().time_since_epoch().count());
  }
  /// How long so many ticks are, within 0.1 %; zero, if the later were taken from the earlier.
  [[nodiscard]] virtual Duration time_of(std::uint64_t ticks) const noexcept {
    const auto passed = static_cast<Duration::rep>(ticks);
    return Duration(passed > 0 ? passed : 0);
  }

  /// What ticks are counted by, for the library itself; null: by ticks() alone.
  [[nodiscard]] virtual const detail::TickCounter* tick_counter() const noexcept { return nullptr; }

  /// Runs `task` on the thread that then drives, after the messages of all connections that are
  /// known to be readable by now: for who wants to gather them. By a thread that does not drive,
  /// and on loops without sockets: as post().
  virtual void defer(Task task) { post(std::move(task)); }

  /// Runs `task` at `when` (at once, if that has passed) on the thread that then drives. Tasks of
  /// the same time run in the order in which they were scheduled.
  virtual TimerId schedule(TimePoint when, Task task) = 0;

  /// Returns whether the task was still waiting; it is then destroyed here. Otherwise it has run,
  /// runs now, or was cancelled before.
  virtual bool cancel(TimerId timer) = 0;

  /// Whether the calling thread is driving this loop now, that is, was called from it.
  [[nodiscard]] virtual bool is_driving() const noexcept = 0;

  /// Drives once without blocking: runs what is ready. Returns whether anything ran; false, too,
  /// when another thread drives.
  virtual bool poll() = 0;

  /// What must be done before this thread waits once more from within the task that it is running
  /// on the loop: re-arm reads, send what is queued.
  struct NestedWaitHook {
    void (*hook)(void*) noexcept = nullptr;  ///< null: nothing is to be done
    void* argument = nullptr;                ///< what it is called with
  };
  /// Sets the calling thread's hook and returns the one that was there, to be put back. A wait on
  /// any loop calls it once, first, and takes it away.
  static NestedWaitHook exchange_nested_wait_hook(NestedWaitHook hook) noexcept;
};

}  // namespace batchrpc
