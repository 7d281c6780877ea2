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

/// How often a node may try calls again, so that retries never become a storm: for a tenth of the
/// calls that ask for it, and ten times that are saved up, at first and at most. Not thread-safe.
class RetryBudget {
 public:
  /// A call that may be tried again makes its first attempt.
  void add_call() noexcept { tenths_ = std::min(tenths_ + 1, kMost); }
  /// For another attempt. False: there is not enough.
  [[nodiscard]] bool take() noexcept {
    if (tenths_ < kRetry) return false;
    tenths_ -= kRetry;
    return true;
  }

 private:
  static constexpr int kRetry = 10;
  static constexpr int kMost = 10 * kRetry;
  int tenths_ = kMost;  // of an attempt
};

/// What the retried calls of a node share: the budget, the jitter of their pauses, and where they
/// are meanwhile. Thread-safe.
class Retries : public std::enable_shared_from_this<Retries> {
 public:
  /// `context` is what an attempt does that waits.
  Retries(std::shared_ptr<Loop> loop, std::shared_ptr<WaitContext> context, std::uint64_t seed);

  /// Counts a call's first attempt; returns the call's number, which no other has.
  std::uint64_t begin_call();
  /// Pays for another attempt; false when the budget is used up.
  [[nodiscard]] bool take_from_budget();
  /// `pause`, or up to a fifth more or less.
  [[nodiscard]] Duration with_jitter(Duration pause);

  /// Keeps a call, and has it make its next attempt at `when`, on the loop. False, and nothing is
  /// done, when closed.
  [[nodiscard]] bool pause(std::shared_ptr<RetriedCall> call, TimePoint when);
  /// The call, which makes no attempt by itself any more; null if it does not pause.
  [[nodiscard]] std::shared_ptr<RetriedCall> take_paused(std::uint64_t number);
  /// Ends the calls that pause with ShutDown, and names them, as in "worker1: add (3 calls), to be
  /// tried again". None pauses from now on.
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
