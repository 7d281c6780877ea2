#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace batchrpc::detail {

/// So many at once, as a lock. (Not std::counting_semaphore: that of GCC 12 loses wake-ups, and one
/// that waits then sleeps on beside free ones.)
class PolicyTurns {
 public:
  explicit PolicyTurns(std::size_t at_once) : free_(at_once) {}

  void lock() {
    std::unique_lock lock(mutex_);
    returned_.wait(lock, [this] { return free_ > 0; });
    --free_;
  }
  void unlock() {
    const std::lock_guard lock(mutex_);
    ++free_;
    returned_.notify_one();
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::condition_variable returned_;
  std::size_t free_;
};

}  // namespace batchrpc::detail
