#pragma once

#include <cstdint>
#include <optional>
#include <random>

#include "batchrpc/base/executor.hpp"

namespace batchrpc {

/// Says when a node that joins asks the root again, and for how long it does: ever more rarely
/// while nobody answers, steadily while the root refuses it. Not thread-safe.
class JoinPace {
 public:
  /// Nodes of different seeds do not ask in step.
  explicit JoinPace(std::uint64_t seed) : random_(seed) {}

  void set_deadline(TimePoint deadline) noexcept { deadline_ = deadline; }
  [[nodiscard]] bool is_over(TimePoint now) const noexcept { return now >= deadline_; }
  /// At least a millisecond.
  [[nodiscard]] Duration time_left(TimePoint now) const noexcept;

  /// When to ask again after nobody has answered, not later than the deadline.
  [[nodiscard]] TimePoint after_silence(TimePoint now);
  /// The same after a refusal; nothing when the root has refused for `patience`, or the time is
  /// over.
  [[nodiscard]] std::optional<TimePoint> after_refusal(TimePoint now, Duration patience);
  /// A random pause.
  [[nodiscard]] Duration between(Duration least, Duration most);

 private:
  std::mt19937_64 random_;
  TimePoint deadline_{};
  int silent_tries_ = 0;
  std::optional<TimePoint> refused_since_{};
};

}  // namespace batchrpc
