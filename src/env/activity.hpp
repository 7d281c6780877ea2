#pragma once

#include <cstddef>
#include <mutex>
#include <optional>

#include "batchrpc/base/error.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"

namespace batchrpc::env {

/// Counts a worker's running activities, so that its destructor can wait for them. Thread-safe.
class Activity {
 public:
  /// Throws ShutDown after close().
  void begin() {
    const std::lock_guard lock(mutex_);
    if (closed_) throw ShutDown("the worker's environments are closing");
    ++count_;
  }
  void end() noexcept {
    std::optional<Promise<void>> idle;
    {
      const std::lock_guard lock(mutex_);
      if (--count_ == 0) idle.swap(idle_);
    }
    if (idle) idle->set_value();
  }
  [[nodiscard]] bool closed() const noexcept {
    const std::lock_guard lock(mutex_);
    return closed_;
  }
  /// Lets nothing begin any more. The future is ready when all activities have ended. Call it once.
  [[nodiscard]] Future<void> close() {
    Promise<void> idle;
    Future<void> ended = idle.get_future();
    const std::lock_guard lock(mutex_);
    closed_ = true;
    if (count_ == 0) {
      idle.set_value();
    } else {
      idle_ = std::move(idle);
    }
    return ended;
  }

 private:
  mutable std::mutex mutex_;
  std::size_t count_ = 0;
  bool closed_ = false;
  std::optional<Promise<void>> idle_;
};

/// An activity that lasts as long as this object. Throws ShutDown.
class During {
 public:
  explicit During(Activity& activity) : activity_(activity) { activity_.begin(); }
  ~During() { activity_.end(); }
  During(const During&) = delete;
  During& operator=(const During&) = delete;

 private:
  Activity& activity_;
};

}  // namespace batchrpc::env
