#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace tensor_benchmark {

/// A semaphore that gives several permits at once, and can be ended.
class Permits {
 public:
  void give(std::size_t count) {
    const std::lock_guard lock(mutex_);
    there_ += count;
    changed_.notify_one();
  }
  /// Waits for at least one permit and takes all available ones, up to `most`; returns 0 after
  /// end().
  std::size_t take(std::size_t most) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return there_ > 0 || ended_; });
    if (ended_) return 0;
    const std::size_t count = std::min(there_, most);
    there_ -= count;
    return count;
  }
  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t there_ = 0;
  bool ended_ = false;
};

}  // namespace tensor_benchmark
