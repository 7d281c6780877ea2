#include "node/retry_schedule.hpp"

#include <chrono>
#include <cmath>

#include "base/time.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/transport/loop.hpp"

namespace batchrpc {

RetrySchedule::RetrySchedule(const RetryOptions& options, Duration timeout,
                             TimePoint called_at) noexcept
    : options_(options),
      timeout_(timeout),
      called_at_(called_at),
      deadline_(after(called_at, timeout)) {}

Duration RetrySchedule::time_for_attempt(const Loop& loop) const noexcept {
  const Duration left = attempts_ <= 1                  ? timeout_
                        : deadline_ == TimePoint::max() ? Duration::max()
                                                        : deadline_ - loop.now();
  return left == Duration::zero() ? Duration(-1) : left;
}

std::optional<Duration> RetrySchedule::least_pause(const Error& error) const noexcept {
  if (error.may_have_run() && !options_.idempotent) return std::nullopt;
  switch (error.code()) {
    case ErrorCode::not_sent:
    case ErrorCode::unknown:
    case ErrorCode::peer_lost:
      return Duration::zero();
    case ErrorCode::shut_down:  // The callee may be restarted.
      return error.may_have_run() ? std::nullopt : std::optional(Duration::zero());
    case ErrorCode::overloaded: {
      const auto* const overloaded = dynamic_cast<const Overloaded*>(&error);
      return overloaded != nullptr ? overloaded->retry_after() : Duration::zero();
    }
    default:  // Also TimedOut: each attempt has all of the remaining time.
      return std::nullopt;
  }
}

Duration RetrySchedule::backoff() const noexcept {
  constexpr Duration kLongest = std::chrono::hours(24 * 365);
  const double pause = std::ldexp(static_cast<double>(options_.backoff.count()), attempts_ - 1);
  return pause < static_cast<double>(kLongest.count()) ? Duration(static_cast<Duration::rep>(pause))
                                                       : kLongest;
}

}  // namespace batchrpc
