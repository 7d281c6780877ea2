#pragma once

#include <algorithm>
#include <chrono>

#include "batchrpc/base/executor.hpp"

namespace batchrpc::detail {

/// Decides whether polling before sleeping pays. A futile poll raises the level, and one that found
/// something lowers it. At level n the next 2^n - 1 waits do not poll. After a poll that was
/// preempted (another thread needs the processor), no wait polls until that time is made up for.
class SpinGate {
 public:
  /// A longer time than this between two polls, in which the thread yields the processor, means
  /// that another thread computes and keeps the processor for a scheduler slice. Threads that poll
  /// too, or answer, give it back much sooner, even if there are more of them than processors.
  static constexpr Duration kPreempted = std::chrono::milliseconds(1);
  /// After such an absence, no wait polls for this many times its length. So polling costs at most
  /// one part in this many where other threads compute.
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
