#pragma once

#include <cstddef>

#include "batchrpc/base/executor.hpp"

namespace batchrpc::detail {

/// What a handler's run costs by the rows of its batch: fixed + per_row · rows, neither negative.
/// Fitted to the batches that ran, by least squares with exponential forgetting: the last
/// twenty-four or so count. As long as all batches are of about one size, only their cost is known;
/// then the two parts keep their ratio, at first everything being fixed. Times are in nanoseconds.
class CostCurve {
 public:
  /// A batch has run. One that took more than twice of what was expected does not count. Of three
  /// in a row that took more than twice or less than half, the third does, and those before hardly
  /// any more: it is the handler that has changed.
  void add(std::size_t rows, Duration cost);

  /// Whether a batch has been seen.
  [[nodiscard]] bool known() const noexcept { return weight_ > 0; }
  [[nodiscard]] double fixed() const noexcept { return fixed_; }
  [[nodiscard]] double per_row() const noexcept { return per_row_; }
  /// Whether the sizes of the batches were too much the same to tell the parts apart.
  [[nodiscard]] bool is_guess() const noexcept { return variance() < hold(); }
  /// The cost of a batch.
  [[nodiscard]] double of(double rows) const noexcept { return fixed_ + per_row_ * rows; }
  /// How many rows a batch may have to cost no more; below 1 when no batch does.
  [[nodiscard]] double rows_within(double cost) const noexcept;

 private:
  void forget(double kept);
  void fit();
  [[nodiscard]] double variance() const noexcept;  // of the rows, times the weight
  [[nodiscard]] double hold() const noexcept;      // what the parts' old ratio weighs against it

  // Sums over the batches, each with its weight.
  double weight_ = 0;
  double rows_ = 0;
  double cost_ = 0;
  double rows_rows_ = 0;
  double rows_cost_ = 0;
  int surprises_ = 0;  // batches in a row that cost something else than expected

  double fixed_ = 0;
  double per_row_ = 0;
};

}  // namespace batchrpc::detail
