#pragma once

#include <optional>

#include "batchrpc/future/async_semaphore.hpp"
#include "batchrpc/future/future.hpp"

namespace batchrpc {

/// A mutex that blocks no thread: lock() returns a future of the lock. Use it for data that remote
/// functions, batch handlers and coroutines share, such as a model.
///
///     auto guard = co_await mutex.lock();                          // in a coroutine
///     mutex.lock().then([](batchrpc::AsyncMutex::Guard guard) {…}); // anywhere
///     auto guard = mutex.lock().get();                             // blocks, as every get()
///
/// It is an AsyncSemaphore with one place, whose guard holds the lock. Do not wait for a second
/// lock while you hold the guard: that wait never ends.
///
/// Thread-safe. The mutex may be destroyed at any time. Its guards and waiting futures still work
/// afterwards.
class AsyncMutex {
 public:
  /// Holds the lock for as long as it exists.
  using Guard = AsyncSemaphore::Guard;

  /// Returns a future of the lock. It completes when all earlier requests have released the lock or
  /// dropped their futures; it is ready at once if the mutex is unlocked. It never fails. Dropping
  /// the future gives up its place in the queue, or the lock if it has been granted already.
  [[nodiscard]] Future<Guard> lock() { return one_.acquire(); }

  /// Returns the lock if the mutex is unlocked, else nothing.
  [[nodiscard]] std::optional<Guard> try_lock() { return one_.try_acquire(); }

 private:
  AsyncSemaphore one_{1};
};

}  // namespace batchrpc
