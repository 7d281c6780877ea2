#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "batchrpc/future/wait.hpp"

namespace batchrpc::test {

/// The real time for which a test waits for an event before it fails. No test waits for a time to
/// pass.
inline constexpr std::chrono::seconds kPatience{30};

/// Waits through `context`. Throws when that takes longer than kPatience.
inline void wait_for(WaitContext& context, Waiter& waiter) {
  context.wait(waiter, context.now() + kPatience);
  if (!waiter.ready()) throw std::runtime_error("the test waited in vain");
}

/// Set by handlers, on any thread, any number of times. A test can wait for it repeatedly.
class Signal {
 public:
  void set() {
    const std::lock_guard lock(mutex_);
    set_ = true;
    if (waiter_ != nullptr) std::exchange(waiter_, nullptr)->notify();
  }

  /// Waits until it is set. Returns at once when it was set since the last wait.
  void wait(WaitContext& context) {
    Waiter waiter;
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(set_, false)) return;
      waiter_ = &waiter;
    }
    wait_for(context, waiter);
    const std::lock_guard lock(mutex_);
    set_ = false;
  }

 private:
  std::mutex mutex_;
  bool set_ = false;
  Waiter* waiter_ = nullptr;
};

/// Waits until arrive() was called `count` times.
class Countdown {
 public:
  explicit Countdown(int count) : left_(count) {}
  void arrive() {
    if (--left_ == 0) waiter_.notify();
  }
  void wait(WaitContext& context) { wait_for(context, waiter_); }

 private:
  std::atomic<int> left_;
  Waiter waiter_;
};

}  // namespace batchrpc::test
