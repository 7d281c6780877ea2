#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "batchrpc/base/executor.hpp"
#include "batchrpc/base/export.hpp"

/// How a thread waits for a future. A future knows nothing of nodes, sockets or clocks: it asks the
/// calling thread's WaitContext to wait, and a node supplies one that meanwhile drives its I/O,
/// runs other work, or lets virtual time pass. See docs/threading.md.
namespace batchrpc {

/// One blocked thread; lives on that thread's stack.
class BATCHRPC_EXPORT Waiter {
 public:
  Waiter() = default;
  /// Waits for a notify() under way to be through.
  ~Waiter() { const std::lock_guard lock(mutex_); }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  /// Whether notify() was called. Any thread.
  [[nodiscard]] bool ready() const noexcept { return ready_.load(std::memory_order_acquire); }

  /// By whoever completes what is waited for, once. Afterwards the waiter may be gone.
  void notify() noexcept;

  /// Makes sleep() return, without making the waiter ready: "look again". Any thread, any number of
  /// times, while the waiter is known to live.
  void nudge() noexcept;

  /// By the waiting thread: sleeps until ready, nudged or, on the system's steady clock, the
  /// deadline. Returns ready().
  bool sleep(const std::optional<TimePoint>& deadline = std::nullopt);

  /// By the waiting thread, before it waits in some other way than sleep() (in epoll_wait, say):
  /// notify() then also calls `interrupt(argument)`, on the notifying thread, under this waiter's
  /// lock; it must not throw or block. Null takes it back; afterwards it is not called any more.
  void set_interrupt(void (*interrupt)(void*) noexcept, void* argument) noexcept;

 private:
  std::atomic<bool> ready_{false};
  bool nudged_ = false;
  void (*interrupt_)(void*) noexcept = nullptr;
  void* interrupt_argument_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
};

/// What a thread does while it waits.
class BATCHRPC_EXPORT WaitContext {
 public:
  virtual ~WaitContext();

  /// Returns when `waiter` is ready, or when `deadline` has passed on this context's clock.
  virtual void wait(Waiter& waiter, const std::optional<TimePoint>& deadline) = 0;

  /// The time on this context's clock. Any thread.
  [[nodiscard]] virtual TimePoint now() const noexcept = 0;

  /// The calling thread's: that of the innermost WaitScope, else the one last suggested if it still
  /// lives, else one that just sleeps. Never null.
  [[nodiscard]] static std::shared_ptr<WaitContext> current();

  /// Makes `context` what the calling thread uses from now on outside any WaitScope; held weakly. A
  /// node does it in every call, so that a thread that calls and then waits drives the node it
  /// called. Costs a comparison when nothing changes.
  static void suggest(const std::shared_ptr<WaitContext>& context) noexcept;
};

/// For the scope's time, the calling thread waits by `context` (which outlives the scope).
class BATCHRPC_EXPORT WaitScope {
 public:
  /// The scope shares the context; null: waits as outside of any scope.
  explicit WaitScope(std::shared_ptr<WaitContext> context) noexcept;
  ~WaitScope();
  WaitScope(const WaitScope&) = delete;
  WaitScope& operator=(const WaitScope&) = delete;

 private:
  std::shared_ptr<WaitContext> previous_;
};

}  // namespace batchrpc
