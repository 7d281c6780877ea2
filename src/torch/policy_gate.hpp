#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace batchrpc::detail {

/// A shared mutex whose exclusive side never starves: while a thread waits for it, no other thread
/// gets the shared side. (std::shared_mutex does not guarantee that, and glibc's prefers readers.)
/// Only one thread at a time may ask for the exclusive side. A thread must not take the shared side
/// twice.
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
  std::mutex mutex_;  // guards the members below
  std::condition_variable open_;
  std::condition_variable empty_;
  std::size_t inside_ = 0;
  bool closed_ = false;
};

}  // namespace batchrpc::detail
