#include "batch/cost_curve.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

namespace batchrpc::detail {
namespace {

constexpr double kCostsKept = 23.0 / 24;
constexpr double kOldCostsKept = 0.02;  // when the handler has changed
constexpr int kSurprisesOfAChange = 3;

// The strength with which the ratio of the two parts is kept: as if by four batches whose sizes
// differ from the mean by a tenth.
constexpr double kPriorWeight = 4 * 0.1 * 0.1;

}  // namespace

void CostCurve::add(std::size_t rows, Duration cost) {
  const auto n = static_cast<double>(rows);
  const double c = std::max(1.0, static_cast<double>(std::chrono::nanoseconds(cost).count()));
  if (known()) {
    const double expected = of(n);
    const bool surprise = c > 2 * expected || c < expected / 2;
    surprises_ = surprise ? std::min(surprises_ + 1, kSurprisesOfAChange) : 0;
    const bool changed = surprises_ >= kSurprisesOfAChange;
    if (c > 2 * expected && !changed && weight_ > 2) return;
    forget(changed ? kOldCostsKept : kCostsKept);
  }
  weight_ += 1;
  rows_ += n;
  cost_ += c;
  rows_rows_ += n * n;
  rows_cost_ += n * c;
  fit();
}

void CostCurve::forget(double kept) {
  for (double* const sum : {&weight_, &rows_, &cost_, &rows_rows_, &rows_cost_})
    *sum *= kept;
}

// The slope is drawn toward its former value, scaled with the mean cost.
void CostCurve::fit() {
  const double mean_rows = rows_ / weight_;
  const double mean_cost = cost_ / weight_;
  const double expected = of(mean_rows);
  const double prior = expected > 0 ? per_row_ * mean_cost / expected : 0;
  const double covariance = rows_cost_ - rows_ * mean_cost;
  const double slope = (covariance + hold() * prior) / (variance() + hold());
  per_row_ = std::clamp(slope, 0.0, mean_cost / mean_rows);
  fixed_ = std::max(0.0, mean_cost - per_row_ * mean_rows);
}

double CostCurve::hold() const noexcept {
  return kPriorWeight * rows_ * rows_ / (weight_ * weight_);
}

double CostCurve::variance() const noexcept {
  return std::max(0.0, rows_rows_ - rows_ * rows_ / weight_);
}

double CostCurve::rows_within(double cost) const noexcept {
  if (cost < fixed_) return 0;
  if (per_row_ <= 0) return std::numeric_limits<double>::infinity();
  return (cost - fixed_) / per_row_;
}

}  // namespace batchrpc::detail
