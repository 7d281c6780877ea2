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

/// The number of a scheduled task; 0 for none.
using TimerId = std::uint64_t;

/// The environment of a node: time, deferred work, and the waits of threads. One thread at a time
/// drives a loop: it polls the transports of the loop and runs posted tasks, in order. This may be
/// the node's I/O thread, or a thread that waits for a future (docs/threading.md). Threads that run
/// an embedder's io_context take turns.
///
/// All functions are thread-safe. Implementations: `SocketLoop` (sockets, real time), `VirtualLoop`
/// (tests).
class BATCHRPC_EXPORT Loop : public WaitContext, public Executor {
 public:
  ~Loop() override;

  /// Returns now() more cheaply, and up to 10 ms behind, for use at every message.
  [[nodiscard]] virtual TimePoint coarse_now() const noexcept { return now(); }
  /// Returns how far behind it may be.
  [[nodiscard]] virtual Duration coarse_lag() const noexcept { return Duration::zero(); }

  /// Returns ticks, to measure durations at every message. Cheaper than now(). Unit and starting
  /// point are its own. Any thread may call it.
  [[nodiscard]] virtual std::uint64_t ticks() const noexcept {
    return static_cast<std::uint64_t>(now().time_since_epoch().count());
  }
  /// Returns how long this many ticks are, within 0.1 %; zero if the number is negative.
  [[nodiscard]] virtual Duration time_of(std::uint64_t ticks) const noexcept {
    const auto passed = static_cast<Duration::rep>(ticks);
    return Duration(passed > 0 ? passed : 0);
  }

  /// Returns the counter of the ticks, for the library itself; null if only ticks() counts them.
  [[nodiscard]] virtual const detail::TickCounter* tick_counter() const noexcept { return nullptr; }

  /// Runs `task` on the driving thread, after the messages of all connections that are now known to
  /// be readable. Use it to gather messages. On a thread that does not drive, and on loops without
  /// sockets, it is the same as post().
  virtual void defer(Task task) { post(std::move(task)); }

  /// Runs `task` at `when` (at once if that has passed) on the driving thread. Tasks of the same
  /// time run in the order in which they were scheduled.
  virtual TimerId schedule(TimePoint when, Task task) = 0;

  /// Returns whether the task was still waiting; if so it is destroyed here. Otherwise it has run,
  /// is running, or was cancelled before.
  virtual bool cancel(TimerId timer) = 0;

  /// Returns whether the calling thread is driving this loop now, that is, was called from it.
  [[nodiscard]] virtual bool is_driving() const noexcept = 0;

  /// Drives once without blocking: runs what is ready. Returns whether anything ran; also returns
  /// false if another thread drives.
  virtual bool poll() = 0;

  /// The work to do before this thread waits again from within its current task of the loop: re-arm
  /// reads, send queued output.
  struct NestedWaitHook {
    void (*hook)(void*) noexcept = nullptr;  ///< null: there is nothing to do
    void* argument = nullptr;                ///< its argument
  };
  /// Sets the calling thread's hook and returns the previous one, to be restored later. The next
  /// wait on any loop first calls the hook once and removes it.
  static NestedWaitHook exchange_nested_wait_hook(NestedWaitHook hook) noexcept;
};

}  // namespace batchrpc
