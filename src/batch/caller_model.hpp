#pragma once

#include <array>
#include <cstddef>

#include "batch/cost_curve.hpp"
#include "batchrpc/base/executor.hpp"

namespace batchrpc::detail {

/// What is known of those who call a batcher, as if each of `callers()` sent its next row
/// `think()` after its last answer. Of rows that come regardless of answers that is true as well:
/// many callers, whose thinking is long. Times are in nanoseconds; the last thirty-two or so
/// batches count, or the last eight, when the rate has changed.
///
/// All follows from what is seen between the ends of two batches: `callers` is the most rows that
/// were in the batcher at once; by Little's law, think = (callers - mean rows inside) / rate. How
/// even the thinking is shows in the rows that come after an answer: if the last of them takes no
/// longer than the mean, it is constant; if it takes the harmonic number of them, exponential.
class CallerModel {
 public:
  /// Rows have come.
  void arrived(TimePoint now, std::size_t rows) {
    if (!begun_) begin(now);
    last_offset_ = static_cast<double>((now - since_).count());
    offsets_ += last_offset_ * static_cast<double>(rows);
    arrivals_ += static_cast<double>(rows);
  }
  /// A batch of `rows` has ended while `waiting` others waited.
  void ended(TimePoint now, std::size_t rows, std::size_t waiting);

  [[nodiscard]] double rate() const noexcept;     ///< rows a nanosecond
  [[nodiscard]] double callers() const noexcept;  ///< at least 1
  [[nodiscard]] double think() const noexcept { return think_; }
  /// 0: all think for the same time, 1: for exponentially distributed times.
  [[nodiscard]] double unevenness() const noexcept { return unevenness_; }

  /// What a cycle is, from the end of a batch to that of the next, when each batch has `rows`.
  struct Cycle {
    double rows = 1;
    double idle = 0;  ///< until they are there, behind the end of the batch before
    double cost = 0;
    [[nodiscard]] double rate() const noexcept { return rows / (idle + cost); }
  };
  /// When the batcher gathers so many rows, at most callers(), before it starts.
  [[nodiscard]] Cycle gathering(double rows, const CostCurve& curve) const;
  /// When it starts with what is there, at most `most`.
  [[nodiscard]] Cycle not_waiting(double most, const CostCurve& curve) const;

 private:
  void begin(TimePoint now);
  void forget_if_changed();
  [[nodiscard]] double find_unevenness() const;
  [[nodiscard]] double came_meanwhile(double rows, double cost) const;

  bool begun_ = false;
  TimePoint since_{};  // the end of the last batch, from which offsets count
  double offsets_ = 0;
  double last_offset_ = 0;
  double arrivals_ = 0;

  // Sums over batches, with exponential forgetting; the first two over the last eight or so.
  double recent_time_ = 0;
  double recent_rows_ = 0;
  int since_change_ = 0;  // batches
  double time_ = 0;
  double rows_ = 0;
  double inside_ = 0;  // rows × time
  double means_ = 0;   // of the rows' offsets
  double lasts_ = 0;
  double counted_ = 0;

  // The most that were inside at once, in this window of batches and the one before.
  std::array<double, 2> most_{1, 1};
  int in_window_ = 0;

  double think_ = 0;
  double unevenness_ = 1;
};

}  // namespace batchrpc::detail
