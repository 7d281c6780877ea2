#pragma once

#include <cstdint>

namespace batchrpc::detail {

/// How long a tick is, by readings of a counter and a clock that come now and then: over all time
/// since the first one, for that is what has the least error.
///
/// In suspend the clock may stand while the counter goes on, or the other way round. So a rate
/// between two readings that is another than that known is not believed, and measuring begins anew;
/// unless the next one is the same, for then it is the counter's. Not thread-safe.
class TickRate {
 public:
  struct Reading {
    std::uint64_t ticks = 0;
    std::uint64_t nanoseconds = 0;
  };

  /// At these ticks the next reading is due.
  std::uint64_t take(const Reading& reading) noexcept;
  /// Nanoseconds a tick; 0: two readings have yet to come.
  [[nodiscard]] double rate() const noexcept { return rate_; }

 private:
  [[nodiscard]] bool is_believed(double rate, std::uint64_t nanoseconds) const noexcept;
  void begin_anew(const Reading& reading) noexcept { first_ = last_ = reading; }

  Reading first_{};
  Reading last_{};
  double rate_ = 0;
  double error_ = 0;  // of the rate: what share of it
  double other_ = 0;  // that was not believed, by the last reading; 0: there is none
};

}  // namespace batchrpc::detail
