#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "batchrpc/base/executor.hpp"
#include "batchrpc/base/export.hpp"

/// How a thread waits for a future. A future knows nothing about nodes, sockets or clocks. It asks
/// the calling thread's WaitContext to wait. A node supplies one that drives its I/O, runs other
/// work, or lets virtual time pass during the wait. See docs/threading.md.
namespace batchrpc {

/// A blocked thread. It lives on that thread's stack.
class BATCHRPC_EXPORT Waiter {
 public:
  Waiter() = default;
  /// Waits until a notify() that is running has finished.
  ~Waiter() { const std::lock_guard lock(mutex_); }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  /// Whether notify() was called. Any thread may call it.
  [[nodiscard]] bool ready() const noexcept { return ready_.load(std::memory_order_acquire); }

  /// Marks the waiter as ready. The thread that completes the awaited operation calls it once.
  /// Afterwards the waiter may be gone.
  void notify() noexcept;

  /// Makes sleep() return without marking the waiter ready, so that its thread looks again. Any
  /// thread may call it any number of times, while the waiter is known to exist.
  void nudge() noexcept;

  /// Sleeps until ready, nudged or, on the system's steady clock, the deadline. Only the waiting
  /// thread calls it. Returns ready().
  bool sleep(const std::optional<TimePoint>& deadline = std::nullopt);

  /// Makes notify() also call `interrupt(argument)`, on the notifying thread and under this
  /// waiter's lock; it must not throw or block. The waiting thread calls this before it waits in
  /// another way than sleep(), for example in epoll_wait. Null removes it; it is not called
  /// afterwards.
  void set_interrupt(void (*interrupt)(void*) noexcept, void* argument) noexcept;

 private:
  std::atomic<bool> ready_{false};
  bool nudged_ = false;
  void (*interrupt_)(void*) noexcept = nullptr;
  void* interrupt_argument_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
};

/// Defines what a thread does while it waits.
class BATCHRPC_EXPORT WaitContext {
 public:
  virtual ~WaitContext();

  /// Returns when `waiter` is ready, or when `deadline` has passed on this context's clock.
  virtual void wait(Waiter& waiter, const std::optional<TimePoint>& deadline) = 0;

  /// The time on this context's clock. Any thread may call it.
  [[nodiscard]] virtual TimePoint now() const noexcept = 0;

  /// The calling thread's context: that of the innermost WaitScope, else the one last suggested if
  /// it still exists, else one that only sleeps. Never null.
  [[nodiscard]] static std::shared_ptr<WaitContext> current();

  /// Makes `context` the calling thread's context outside any WaitScope; it is held weakly. A node
  /// suggests its own in every call, so that a thread that calls and then waits drives that node.
  /// If nothing changes it costs one comparison.
  static void suggest(const std::shared_ptr<WaitContext>& context) noexcept;
};

/// Makes the calling thread wait with `context` for the duration of the scope. The context outlives
/// the scope.
class BATCHRPC_EXPORT WaitScope {
 public:
  /// The scope shares the context. With null, the thread waits as if outside any scope.
  explicit WaitScope(std::shared_ptr<WaitContext> context) noexcept;
  ~WaitScope();
  WaitScope(const WaitScope&) = delete;
  WaitScope& operator=(const WaitScope&) = delete;

 private:
  std::shared_ptr<WaitContext> previous_;
};

namespace detail {

class StateBase;

/// Refuses waits of the calling thread that would never end, while it exists. It lives on the
/// thread's stack.
class BATCHRPC_EXPORT WaitGuard {
 public:
  WaitGuard() noexcept;
  WaitGuard(const WaitGuard&) = delete;
  WaitGuard& operator=(const WaitGuard&) = delete;

  /// Asks all guards of the thread whether it may wait for `state` without a deadline. Throws their
  /// errors.
  static void check(const StateBase& state);

 protected:
  ~WaitGuard();
  /// The guard made before this one; null if there is none.
  [[nodiscard]] WaitGuard* outer() const noexcept { return outer_; }
  /// The thread's innermost guard; null if there is none.
  [[nodiscard]] static WaitGuard* innermost() noexcept;

 private:
  /// Throws if the thread must not wait for `state`.
  virtual void check_wait(const StateBase& state) = 0;

  WaitGuard* const outer_;
};

}  // namespace detail

}  // namespace batchrpc
