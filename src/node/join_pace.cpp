#include "node/join_pace.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace batchrpc {

Duration JoinPace::patience(Duration ping_after) noexcept {
  return std::max<Duration>(std::chrono::seconds(2), 4 * ping_after);
}

Duration JoinPace::time_left(TimePoint now) const noexcept {
  return std::max<Duration>(deadline_ - now, std::chrono::milliseconds(1));
}

TimePoint JoinPace::after_silence(TimePoint now) {
  constexpr double kLongest = 1000;
  double milliseconds = std::min(10 * std::pow(1.6, silent_tries_++), kLongest);
  milliseconds *= std::uniform_real_distribution(0.8, 1.2)(random_);
  const auto pause =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(milliseconds));
  return std::min(now + pause, deadline_);
}

std::optional<TimePoint> JoinPace::after_refusal(TimePoint now, Duration patience) {
  constexpr Duration kAfterRefusal = std::chrono::milliseconds(50);
  if (!refused_since_) refused_since_ = now;
  if (now - *refused_since_ >= patience || is_over(now)) return std::nullopt;
  return std::min(now + kAfterRefusal, deadline_);
}

Duration JoinPace::between(Duration least, Duration most) {
  using Pause = std::uniform_int_distribution<Duration::rep>;
  return Duration(Pause(least.count(), most.count())(random_));
}

}  // namespace batchrpc
