#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "batchrpc/transport/loop.hpp"

namespace batchrpc {

class RetriedCall;

/// Limits how often a node retries calls, so that retries never become a storm: for a tenth of the
/// calls that may be retried, and for ten saved retries, at first and at most. Not thread-safe.
class RetryBudget {
 public:
  /// A call that may be retried makes its first attempt.
  void add_call() noexcept { tenths_ = std::min(tenths_ + 1, kMost); }
  /// Pays for another attempt. False if the budget is used up.
  [[nodiscard]] bool take() noexcept {
    if (tenths_ < kRetry) return false;
    tenths_ -= kRetry;
    return true;
  }

 private:
  static constexpr int kRetry = 10;
  static constexpr int kMost = 10 * kRetry;
  int tenths_ = kMost;  // in tenths of an attempt
};

/// The budget that the retried calls of a node share, the jitter of their pauses, and the calls
/// that pause. Thread-safe.
class Retries : public std::enable_shared_from_this<Retries> {
 public:
  /// An attempt that waits for a future waits by `context`.
  Retries(std::shared_ptr<Loop> loop, std::shared_ptr<WaitContext> context, std::uint64_t seed);

  /// Counts a call's first attempt. Returns a number that no other call has.
  std::uint64_t begin_call();
  /// Pays for another attempt. False if the budget is used up.
  [[nodiscard]] bool take_from_budget();
  /// Returns `pause`, changed by up to a fifth at random.
  [[nodiscard]] Duration with_jitter(Duration pause);

  /// Keeps a call, which makes its next attempt at `when`, on the loop. After close() it does
  /// nothing and returns false.
  [[nodiscard]] bool pause(std::shared_ptr<RetriedCall> call, TimePoint when);
  /// Ends the pause of a call without an attempt, and returns the call; null if it does not pause.
  [[nodiscard]] std::shared_ptr<RetriedCall> take_paused(std::uint64_t number);
  /// Whether no call pauses.
  [[nodiscard]] bool is_idle();
  /// Ends the calls that pause with ShutDown, and returns their names, such as "worker1: add (3
  /// calls), to be tried again". From now on none pauses.
  std::vector<std::string> close();

 private:
  struct Paused {
    std::shared_ptr<RetriedCall> call;
    TimerId timer = 0;
  };

  const std::shared_ptr<Loop> loop_;
  const std::shared_ptr<WaitContext> context_;
  std::mutex mutex_;
  RetryBudget budget_;
  std::mt19937_64 random_;
  std::map<std::uint64_t, Paused> paused_;
  std::uint64_t next_number_ = 1;
  bool closed_ = false;
};

}  // namespace batchrpc
