#pragma once

#include <algorithm>
#include <chrono>

#include "batchrpc/base/executor.hpp"

namespace batchrpc::detail {

/// Decides whether it pays to poll before sleeping. A preempted poll (somebody else needs the
/// processor) or one in vain raises the level, one that found something lowers it; at level n the
/// next 2^n - 1 waits do not poll.
class SpinGate {
 public:
  [[nodiscard]] bool may_spin() noexcept {
    if (skip_ == 0) return true;
    --skip_;
    return false;
  }
  void hit() noexcept { level_ = std::max(level_ - 1, 0); }
  void miss() noexcept { close(1); }
  void preempted() noexcept { close(3); }

  /// Longer than this between two polls, where the thread gives the processor to whoever wants it:
  /// somebody else computes, and keeps it for a slice of the scheduler's. Threads that poll too, or
  /// answer, give it back much sooner, also when they are more than there are processors.
  static constexpr Duration kPreempted = std::chrono::milliseconds(1);

 private:
  static constexpr int kMaxLevel = 12;
  void close(int levels) noexcept {
    level_ = std::min(level_ + levels, kMaxLevel);
    skip_ = (1U << level_) - 1;
  }

  int level_ = 0;
  unsigned skip_ = 0;
};

}  // namespace batchrpc::detail
