#pragma once

#include <cstdint>

namespace batchrpc::detail {

/// The length of a tick, computed from occasional readings of a counter and a clock. It is taken
/// over all time since the first reading, because that has the least error.
///
/// While the machine is suspended, the clock may stand while the counter continues, or the other
/// way round. So a rate between two readings that differs from the known rate is rejected, and
/// measuring starts again. If the next reading gives the same rate, it is accepted as the
/// counter's. Not thread-safe.
class TickRate {
 public:
  struct Reading {
    std::uint64_t ticks = 0;
    std::uint64_t nanoseconds = 0;
  };

  /// The tick at which the next reading is due.
  std::uint64_t take(const Reading& reading) noexcept;
  /// Nanoseconds per tick; 0 until there are two readings.
  [[nodiscard]] double rate() const noexcept { return rate_; }

 private:
  [[nodiscard]] bool is_believed(double rate, std::uint64_t nanoseconds) const noexcept;
  void begin_anew(const Reading& reading) noexcept { first_ = last_ = reading; }

  Reading first_{};
  Reading last_{};
  double rate_ = 0;
  double error_ = 0;  // relative error of the rate
  double other_ = 0;  // the rejected rate of the last reading; 0: none
};

}  // namespace batchrpc::detail
