#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace batchrpc::detail {

/// A shared mutex whose exclusive side is never starved: while one waits for it, nobody new gets
/// the shared side. (std::shared_mutex promises neither, and glibc's has readers go first.) One at
/// a time may ask for the exclusive side; no thread has the shared side twice.
class PolicyGate {
 public:
  void lock_shared() {
    std::unique_lock lock(mutex_);
    open_.wait(lock, [this] { return !closed_; });
    ++inside_;
  }
  void unlock_shared() {
    const std::lock_guard lock(mutex_);
    if (--inside_ == 0 && closed_) empty_.notify_one();
  }
  void lock() {
    std::unique_lock lock(mutex_);
    closed_ = true;
    empty_.wait(lock, [this] { return inside_ == 0; });
  }
  void unlock() {
    const std::lock_guard lock(mutex_);
    closed_ = false;
    open_.notify_all();
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::condition_variable open_;
  std::condition_variable empty_;
  std::size_t inside_ = 0;
  bool closed_ = false;
};

}  // namespace batchrpc::detail
