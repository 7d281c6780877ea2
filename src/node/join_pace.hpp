#pragma once

#include <cstdint>
#include <optional>
#include <random>

#include "batchrpc/base/executor.hpp"

namespace batchrpc {

/// Decides when a joining node asks the root again, and for how long: more and more rarely while no
/// node answers, steadily while the root refuses it. Not thread-safe.
class JoinPace {
 public:
  /// Nodes with different seeds ask at different times.
  explicit JoinPace(std::uint64_t seed) : random_(seed) {}

  /// Returns how long a node repeats its request for a taken name or rank, since the holder may
  /// just have ended: four ping intervals, in which a living holder answers, and at least 2 s.
  [[nodiscard]] static Duration patience(Duration ping_after) noexcept;

  void set_deadline(TimePoint deadline) noexcept { deadline_ = deadline; }
  [[nodiscard]] bool is_over(TimePoint now) const noexcept { return now >= deadline_; }
  /// At least a millisecond.
  [[nodiscard]] Duration time_left(TimePoint now) const noexcept;

  /// Returns when to ask again after no node has answered, at the deadline at the latest.
  [[nodiscard]] TimePoint after_silence(TimePoint now);
  /// The same after a refusal. Empty when the root has refused for `patience`, or at the deadline.
  [[nodiscard]] std::optional<TimePoint> after_refusal(TimePoint now, Duration patience);
  /// Returns a random pause.
  [[nodiscard]] Duration between(Duration least, Duration most);

 private:
  std::mt19937_64 random_;
  TimePoint deadline_{};
  int silent_tries_ = 0;
  std::optional<TimePoint> refused_since_{};
};

}  // namespace batchrpc
