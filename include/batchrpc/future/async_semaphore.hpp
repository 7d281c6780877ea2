#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "batchrpc/base/export.hpp"
#include "batchrpc/future/future.hpp"

namespace batchrpc {

/// A semaphore that blocks no thread: acquire() returns a future of a place. Use it to bound what
/// runs at once. A handler that waits for a place holds back its caller's reply:
///
///     batchrpc::AsyncSemaphore places(8);
///     batchrpc::Future<Image> render(Scene scene) {
///       const auto place = co_await places.acquire();
///       co_return co_await draw(std::move(scene));
///     }
///
/// Places are granted in the order of the calls of acquire(). A place belongs to its guard, not to
/// a thread. A guard may be kept, passed on and destroyed on any thread.
///
/// Thread-safe. The semaphore may be destroyed at any time. Its guards and waiting futures still
/// work afterwards.
class BATCHRPC_EXPORT AsyncSemaphore {
  class Core;

 public:
  /// Holds a place for as long as it exists. Movable. Only one thread may use a guard at a time.
  class BATCHRPC_EXPORT Guard {
   public:
    /// Holds no place.
    Guard() noexcept = default;
    /// Takes over the place of the other guard.
    Guard(Guard&&) noexcept = default;
    /// Releases this guard's place, if any, and takes over that of the other guard.
    Guard& operator=(Guard&& other) noexcept {
      Guard taken(std::move(other));
      core_.swap(taken.core_);
      return *this;
    }
    ~Guard() { unlock(); }

    /// Releases the place and grants it to the next in line. The callbacks of that future run
    /// inside this call, under the rules for futures (see Future). Without a place it does nothing.
    void unlock() noexcept;

    /// Whether this guard holds a place.
    [[nodiscard]] explicit operator bool() const noexcept { return core_ != nullptr; }

   private:
    friend class AsyncSemaphore;
    explicit Guard(std::shared_ptr<Core> core) noexcept : core_(std::move(core)) {}

    std::shared_ptr<Core> core_;
  };

  /// Creates a semaphore with this number of free places. Throws InvalidArgument for 0.
  explicit AsyncSemaphore(std::size_t places);
  ~AsyncSemaphore();
  AsyncSemaphore(const AsyncSemaphore&) = delete;
  AsyncSemaphore& operator=(const AsyncSemaphore&) = delete;

  /// Returns a future of a place. It is ready at once if one is free. It never fails. Dropping the
  /// future gives up its position in line, or the place if it has been granted already.
  [[nodiscard]] Future<Guard> acquire();

  /// Returns a place if one is free, else nothing.
  [[nodiscard]] std::optional<Guard> try_acquire();

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace batchrpc
