#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "batchrpc/base/export.hpp"
#include "batchrpc/future/future.hpp"

namespace batchrpc {

/// Mutual exclusion that no thread waits for: who wants the lock gets a future of it. For what
/// remote functions, batch handlers and coroutines share, such as a model.
///
///     auto guard = co_await mutex.lock();                          // in a coroutine
///     mutex.lock().then([](batchrpc::AsyncMutex::Guard guard) {…}); // anywhere
///     auto guard = mutex.lock().get();                             // blocks, as every get()
///
/// The lock belongs to its guard, not to a thread: a guard may be kept, passed on and destroyed on
/// any thread. It is granted in the order in which it was asked for. Who asks for it a second time,
/// and waits for that while it has it, waits for ever.
///
/// Thread-safe. May be destroyed at any time: guards, and those who wait, go on as if it lived.
class BATCHRPC_EXPORT AsyncMutex {
  class Core;

 public:
  /// The lock, for as long as this object lives. Movable; used by one thread at a time.
  class BATCHRPC_EXPORT Guard {
   public:
    /// Of no lock.
    Guard() noexcept = default;
    /// The other one has no lock afterwards.
    Guard(Guard&&) noexcept = default;
    /// The same; gives back the lock that this one had.
    Guard& operator=(Guard&& other) noexcept {
      Guard taken(std::move(other));
      core_.swap(taken.core_);
      return *this;
    }
    ~Guard() { unlock(); }

    /// Gives the lock back, and with it to the next who waits: the callbacks of that one's future
    /// run in here, under the rules for futures (see Future). Without a lock it does nothing.
    void unlock() noexcept;

    /// Whether it has the lock.
    [[nodiscard]] explicit operator bool() const noexcept { return core_ != nullptr; }

   private:
    friend class AsyncMutex;
    explicit Guard(std::shared_ptr<Core> core) noexcept : core_(std::move(core)) {}

    std::shared_ptr<Core> core_;
  };

  /// Unlocked.
  AsyncMutex();
  ~AsyncMutex();
  AsyncMutex(const AsyncMutex&) = delete;
  AsyncMutex& operator=(const AsyncMutex&) = delete;

  /// The lock, when all that asked before have given it back or have dropped their futures; ready
  /// at once when nobody has it. Never fails. A future that is dropped gives up its place, or the
  /// lock, if it has that already.
  [[nodiscard]] Future<Guard> lock();

  /// The lock, if nobody has it.
  [[nodiscard]] std::optional<Guard> try_lock();

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace batchrpc
