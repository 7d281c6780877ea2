#pragma once

#include <optional>

#include "batchrpc/base/executor.hpp"
#include "batchrpc/call/node_options.hpp"

namespace batchrpc {

class Error;
class Loop;

/// Decides whether and when a call is retried: counts its attempts, and limits their pauses and the
/// time that they take together. Not thread-safe: the call's owner uses it.
class RetrySchedule {
 public:
  /// All attempts together may take `timeout` from `called_at` on. Duration::max() sets no limit.
  RetrySchedule(const RetryOptions& options, Duration timeout, TimePoint called_at) noexcept;

  void begin_attempt() noexcept { ++attempts_; }
  /// The number of attempts that have begun.
  [[nodiscard]] int attempts() const noexcept { return attempts_; }
  [[nodiscard]] int most_attempts() const noexcept { return options_.attempts; }
  [[nodiscard]] bool is_used_up() const noexcept { return attempts_ >= options_.attempts; }

  /// The time of the call, before its first attempt.
  [[nodiscard]] TimePoint called_at() const noexcept { return called_at_; }
  /// Returns how long the attempt that has just begun may take. Negative after the deadline. Never
  /// zero, which would mean the node's default.
  [[nodiscard]] Duration time_for_attempt(const Loop& loop) const noexcept;
  [[nodiscard]] bool is_in_time(TimePoint when) const noexcept { return when < deadline_; }

  /// Returns the shortest pause after an attempt that ended with `error`. Empty if the call must
  /// not be retried.
  [[nodiscard]] std::optional<Duration> least_pause(const Error& error) const noexcept;
  /// Returns the pause of the options after the attempts that have begun.
  [[nodiscard]] Duration backoff() const noexcept;

 private:
  const RetryOptions options_;
  const Duration timeout_;
  const TimePoint called_at_;
  const TimePoint deadline_;
  int attempts_ = 0;
};

}  // namespace batchrpc
