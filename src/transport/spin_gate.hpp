#pragma once

#include <algorithm>
#include <chrono>

#include "batchrpc/base/executor.hpp"

namespace batchrpc::detail {

/// Decides whether it pays to poll before sleeping. A poll in vain raises the level, one that found
/// something lowers it; at level n the next 2^n - 1 waits do not poll. After one that was preempted
/// (somebody else needs the processor) none polls for a time that makes up for it.
class SpinGate {
 public:
  /// Longer than this between two polls, where the thread gives the processor to whoever wants it:
  /// somebody else computes, and keeps it for a slice of the scheduler's. Threads that poll too, or
  /// answer, give it back much sooner, also when they are more than there are processors.
  static constexpr Duration kPreempted = std::chrono::milliseconds(1);
  /// For so many times as long as the absence was no wait polls: what polling costs where others
  /// compute is then no more than one part of so many.
  static constexpr int kMakeUp = 16;

  [[nodiscard]] bool may_spin(TimePoint now) noexcept {
    if (now < closed_until_) return false;
    if (skip_ == 0) return true;
    --skip_;
    return false;
  }
  void hit() noexcept { level_ = std::max(level_ - 1, 0); }
  void miss() noexcept {
    level_ = std::min(level_ + 1, kMaxLevel);
    skip_ = (1U << level_) - 1;
  }
  void preempted(TimePoint now, Duration absence) noexcept {
    closed_until_ = now + kMakeUp * absence;
  }

 private:
  static constexpr int kMaxLevel = 12;

  int level_ = 0;
  unsigned skip_ = 0;
  TimePoint closed_until_{};
};

}  // namespace batchrpc::detail
