#pragma once

#include <atomic>

namespace batchrpc::detail {

/// A mutex of four bytes, for objects that exist in large numbers. After Drepper, "Futexes Are
/// Tricky", 2011, mutex 3.
class SmallMutex {
 public:
  void lock() noexcept {
    int seen = kFree;
    if (state_.compare_exchange_strong(seen, kTaken, std::memory_order_acquire)) return;
    if (seen != kAwaited) seen = state_.exchange(kAwaited, std::memory_order_acquire);
    while (seen != kFree) {
      state_.wait(kAwaited, std::memory_order_relaxed);
      seen = state_.exchange(kAwaited, std::memory_order_acquire);
    }
  }
  void unlock() noexcept {
    if (state_.exchange(kFree, std::memory_order_release) == kAwaited) state_.notify_one();
  }

 private:
  static constexpr int kFree = 0;
  static constexpr int kTaken = 1;    // no thread waits
  static constexpr int kAwaited = 2;  // a thread may wait

  std::atomic<int> state_{kFree};
};

}  // namespace batchrpc::detail
