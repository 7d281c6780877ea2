#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "batchrpc/base/export.hpp"
#include "batchrpc/future/future.hpp"

namespace batchrpc {

/// A mutex that blocks no thread: lock() returns a future of the lock. Use it for data that remote
/// functions, batch handlers and coroutines share, such as a model.
///
///     auto guard = co_await mutex.lock();                          // in a coroutine
///     mutex.lock().then([](batchrpc::AsyncMutex::Guard guard) {…}); // anywhere
///     auto guard = mutex.lock().get();                             // blocks, as every get()
///
/// The lock belongs to its guard, not to a thread. A guard may be kept, passed on and destroyed on
/// any thread. Locks are granted in the order of the calls of lock(). Do not wait for a second lock
/// while you hold the guard: that wait never ends.
///
/// Thread-safe. The mutex may be destroyed at any time. Its guards and waiting futures still work
/// afterwards.
class BATCHRPC_EXPORT AsyncMutex {
  class Core;

 public:
  /// Holds the lock for as long as it exists. Movable. Only one thread may use a guard at a time.
  class BATCHRPC_EXPORT Guard {
   public:
    /// Holds no lock.
    Guard() noexcept = default;
    /// Takes over the lock of the other guard.
    Guard(Guard&&) noexcept = default;
    /// Releases this guard's lock, if any, and takes over that of the other guard.
    Guard& operator=(Guard&& other) noexcept {
      Guard taken(std::move(other));
      core_.swap(taken.core_);
      return *this;
    }
    ~Guard() { unlock(); }

    /// Releases the lock and grants it to the next in line. The callbacks of that future run inside
    /// this call, under the rules for futures (see Future). Without a lock it does nothing.
    void unlock() noexcept;

    /// Whether this guard holds the lock.
    [[nodiscard]] explicit operator bool() const noexcept { return core_ != nullptr; }

   private:
    friend class AsyncMutex;
    explicit Guard(std::shared_ptr<Core> core) noexcept : core_(std::move(core)) {}

    std::shared_ptr<Core> core_;
  };

  /// Creates an unlocked mutex.
  AsyncMutex();
  ~AsyncMutex();
  AsyncMutex(const AsyncMutex&) = delete;
  AsyncMutex& operator=(const AsyncMutex&) = delete;

  /// Returns a future of the lock. It completes when all earlier requests have released the lock or
  /// dropped their futures; it is ready at once if the mutex is unlocked. It never fails. Dropping
  /// the future gives up its place in the queue, or the lock if it has been granted already.
  [[nodiscard]] Future<Guard> lock();

  /// Returns the lock if the mutex is unlocked, else nothing.
  [[nodiscard]] std::optional<Guard> try_lock();

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace batchrpc
