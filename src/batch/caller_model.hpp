#pragma once

#include <array>
#include <cstddef>

#include "batch/cost_curve.hpp"
#include "batchrpc/base/executor.hpp"

namespace batchrpc::detail {

/// A model of a batcher's callers: each of `callers()` sends its next row `think()` after its last
/// answer. Rows that arrive independently of answers fit as well: they are many callers with a long
/// think time. Times are in nanoseconds. The last thirty-two or so batches count, or the last eight
/// if the rate has changed.
///
/// Everything is computed from observations between the ends of two batches. `callers` is the most
/// rows that were in the batcher at once. By Little's law, think = (callers - mean rows inside) /
/// rate. The evenness of think times shows in the rows that arrive after an answer: if the last one
/// takes no longer than the mean, the think time is constant. If it takes the harmonic number of
/// means, it is exponential.
class CallerModel {
 public:
  /// Call this when rows have arrived.
  void arrived(TimePoint now, std::size_t rows) {
    if (!begun_) begin(now);
    last_offset_ = static_cast<double>((now - since_).count());
    offsets_ += last_offset_ * static_cast<double>(rows);
    arrivals_ += static_cast<double>(rows);
  }
  /// A batch of `rows` has ended while `waiting` others waited.
  void ended(TimePoint now, std::size_t rows, std::size_t waiting);

  [[nodiscard]] double rate() const noexcept;     ///< rows per nanosecond
  [[nodiscard]] double callers() const noexcept;  ///< at least 1
  [[nodiscard]] double think() const noexcept { return think_; }
  /// 0: all think times are equal; 1: they are exponentially distributed.
  [[nodiscard]] double unevenness() const noexcept { return unevenness_; }

  /// A cycle from the end of a batch to the end of the next, if each batch has `rows`.
  struct Cycle {
    double rows = 1;
    double idle = 0;  ///< from the end of the previous batch until the rows are there
    double cost = 0;
    [[nodiscard]] double rate() const noexcept { return rows / (idle + cost); }
  };
  /// The cycle if the batcher gathers `rows` rows, at most callers(), before it starts.
  [[nodiscard]] Cycle gathering(double rows, const CostCurve& curve) const;
  /// The cycle if it starts with the rows that are there, at most `most`.
  [[nodiscard]] Cycle not_waiting(double most, const CostCurve& curve) const;

 private:
  void begin(TimePoint now);
  void forget_if_changed();
  [[nodiscard]] double find_unevenness() const;
  [[nodiscard]] double came_meanwhile(double rows, double cost) const;

  bool begun_ = false;
  TimePoint since_{};  // the end of the last batch; offsets count from here
  double offsets_ = 0;
  double last_offset_ = 0;
  double arrivals_ = 0;

  // Sums over batches, with exponential forgetting; the first two cover the last eight or so.
  double recent_time_ = 0;
  double recent_rows_ = 0;
  int since_change_ = 0;  // batches
  double time_ = 0;
  double rows_ = 0;
  double inside_ = 0;  // rows × time
  double means_ = 0;   // of the rows' offsets
  double lasts_ = 0;
  double counted_ = 0;

  // The most rows inside at once, in this window of batches and the previous one.
  std::array<double, 2> most_{1, 1};
  int in_window_ = 0;

  double think_ = 0;
  double unevenness_ = 1;
};

}  // namespace batchrpc::detail
