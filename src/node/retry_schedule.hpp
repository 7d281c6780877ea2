#pragma once

#include <optional>

#include "batchrpc/base/executor.hpp"
#include "batchrpc/call/node_options.hpp"

namespace batchrpc {

class Error;
class Loop;

/// Says whether and when a call is tried again: counts its attempts, and knows the pauses between
/// them and the time that they have together. Not thread-safe: the call's owner uses it.
class RetrySchedule {
 public:
  /// All attempts together may take `timeout` from `called_at` on; Duration::max(): any time.
  RetrySchedule(const RetryOptions& options, Duration timeout, TimePoint called_at) noexcept;

  void begin_attempt() noexcept { ++attempts_; }
  /// How many have begun.
  [[nodiscard]] int attempts() const noexcept { return attempts_; }
  [[nodiscard]] int most_attempts() const noexcept { return options_.attempts; }
  [[nodiscard]] bool is_used_up() const noexcept { return attempts_ >= options_.attempts; }

  /// When the call was made, before its first attempt.
  [[nodiscard]] TimePoint called_at() const noexcept { return called_at_; }
  /// How long the attempt that has just begun may take. Never zero, which would mean the node's
  /// default; negative when the time is over.
  [[nodiscard]] Duration time_for_attempt(const Loop& loop) const noexcept;
  [[nodiscard]] bool is_in_time(TimePoint when) const noexcept { return when < deadline_; }

  /// The shortest pause after an attempt that ended with `error`; nothing: the call must not be
  /// tried again.
  [[nodiscard]] std::optional<Duration> least_pause(const Error& error) const noexcept;
  /// The pause that the options ask for after the attempts that have begun.
  [[nodiscard]] Duration backoff() const noexcept;

 private:
  const RetryOptions options_;
  const Duration timeout_;
  const TimePoint called_at_;
  const TimePoint deadline_;
  int attempts_ = 0;
};

}  // namespace batchrpc
