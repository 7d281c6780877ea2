#pragma once

#include <cstddef>

#include "batchrpc/base/executor.hpp"

namespace batchrpc::detail {

/// The cost of a handler's run as a function of the batch's rows: fixed + per_row · rows, neither
/// negative. It is fitted to past batches by least squares with exponential forgetting: the last
/// twenty-four or so count. While all batches have about the same size, only their total cost is
/// known; then the two parts keep their ratio. At first all of it is fixed. Times are in
/// nanoseconds.
class CostCurve {
 public:
  /// Adds a batch that has run. One that took more than twice the expected time does not count. If
  /// three in a row took more than twice or less than half of it, the handler has changed: the
  /// third counts, and the batches before hardly any more.
  void add(std::size_t rows, Duration cost);

  /// Whether a batch has been seen.
  [[nodiscard]] bool known() const noexcept { return weight_ > 0; }
  [[nodiscard]] double fixed() const noexcept { return fixed_; }
  [[nodiscard]] double per_row() const noexcept { return per_row_; }
  /// Whether the sizes of the batches were too similar to separate the two parts.
  [[nodiscard]] bool is_guess() const noexcept { return variance() < hold(); }
  /// The cost of a batch.
  [[nodiscard]] double of(double rows) const noexcept { return fixed_ + per_row_ * rows; }
  /// The largest number of rows whose cost is at most `cost`; below 1 if there is none.
  [[nodiscard]] double rows_within(double cost) const noexcept;

 private:
  void forget(double kept);
  void fit();
  [[nodiscard]] double variance() const noexcept;  // of the rows, times the weight
  [[nodiscard]] double hold() const noexcept;      // the weight of the parts' old ratio against it

  // Sums over the batches, each with its weight.
  double weight_ = 0;
  double rows_ = 0;
  double cost_ = 0;
  double rows_rows_ = 0;
  double rows_cost_ = 0;
  int surprises_ = 0;  // batches in a row with an unexpected cost

  double fixed_ = 0;
  double per_row_ = 0;
};

}  // namespace batchrpc::detail
