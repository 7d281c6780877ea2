#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace batchrpc::detail {

/// Limits how many threads run at once; used as a lock. (Not std::counting_semaphore: GCC 12's
/// loses wake-ups, and a waiting thread may then sleep although there is room.)
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
  std::mutex mutex_;  // guards the members below
  std::condition_variable returned_;
  std::size_t free_;
};

}  // namespace batchrpc::detail
