#include "batch/caller_model.hpp"

#include <algorithm>
#include <cmath>

namespace batchrpc::detail {
namespace {

constexpr double kKept = 31.0 / 32;
constexpr double kRecentKept = 7.0 / 8;
constexpr double kChange = 1.75;  // when the rate has changed by this factor,
constexpr double kKeptOfTheOld = 0.05;
constexpr int kBetweenChanges = 16;  // least batches between two
constexpr int kWindow = 4;           // the most rows are taken over four to eight batches

// If fewer rows than kTelling arrive at a time, the unevenness is unknown. The value assumed then
// is low enough that waiting is tried, and more rows arrive at a time.
constexpr double kTelling = 1.6;
constexpr double kUnknownUnevenness = 0.3;

}  // namespace

void CallerModel::begin(TimePoint now) {
  begun_ = true;
  since_ = now;
}

void CallerModel::ended(TimePoint now, std::size_t rows, std::size_t waiting) {
  if (!begun_) begin(now);
  const auto span = static_cast<double>((now - since_).count());
  const auto inside = static_cast<double>(rows + waiting);
  for (double* const sum : {&time_, &rows_, &inside_, &means_, &lasts_, &counted_})
    *sum *= kKept;
  recent_time_ = recent_time_ * kRecentKept + span;
  recent_rows_ = recent_rows_ * kRecentKept + arrivals_;
  forget_if_changed();
  time_ += span;
  rows_ += arrivals_;
  inside_ += std::max(0.0, inside * span - offsets_);  // rows only arrived in between
  if (arrivals_ > 0) {
    means_ += offsets_ / arrivals_;
    lasts_ += last_offset_;
    counted_ += 1;
  }
  if (++in_window_ > kWindow) {
    in_window_ = 1;
    most_ = {1, most_[0]};
  }
  most_[0] = std::max(most_[0], inside);
  since_ = now;
  offsets_ = last_offset_ = arrivals_ = 0;
  think_ = rows_ > 0 ? std::max(0.0, callers() * time_ - inside_) / rows_ : 0;
  unevenness_ = find_unevenness();
}

void CallerModel::forget_if_changed() {
  if (since_change_ < kBetweenChanges) {
    ++since_change_;
    return;
  }
  const double before = rows_ * recent_time_;
  const double now = recent_rows_ * time_;
  if (now < kChange * before && before < kChange * now) return;
  for (double* const sum : {&time_, &rows_, &inside_, &means_, &lasts_, &counted_})
    *sum *= kKeptOfTheOld;
  most_ = {1, 1};
  since_change_ = in_window_ = 0;
}

double CallerModel::rate() const noexcept { return time_ > 0 ? rows_ / time_ : 0; }

double CallerModel::callers() const noexcept { return std::max(most_[0], most_[1]); }

double CallerModel::find_unevenness() const {
  const double came = counted_ > 0 ? rows_ / counted_ : 0;
  if (came < kTelling || means_ <= 0) return kUnknownUnevenness;
  const double harmonic = std::log(came + 0.5) + 0.577;
  return std::clamp((lasts_ / means_ - 1) / (harmonic - 1), 0.0, 1.0);
}

// The number of callers outside the batch that have sent their row by its end.
double CallerModel::came_meanwhile(double rows, double cost) const {
  const double thinking = std::max(0.0, callers() - rows);
  const double part = cost / std::max(1.0, think());
  const double uneven = unevenness();
  return thinking * (uneven * -std::expm1(-part) + (1 - uneven) * std::min(1.0, part));
}

CallerModel::Cycle CallerModel::gathering(double rows, const CostCurve& curve) const {
  Cycle cycle{.rows = rows, .idle = 0, .cost = curve.of(rows)};
  const double there = came_meanwhile(rows, cycle.cost);
  if (there >= rows) return cycle;
  const double thinking = callers() - there;
  const double missing = std::min(rows - there, thinking);
  const double exponential = std::log((thinking + 0.5) / (thinking - missing + 0.5));
  const bool others_do = callers() - rows - there >= missing;
  const double constant = others_do ? std::max(0.0, 1 - cycle.cost / std::max(1.0, think())) : 1;
  const double uneven = unevenness();
  cycle.idle = think() * (uneven * exponential + (1 - uneven) * constant);
  return cycle;
}

// The batch that takes as long as its rows need to arrive; at least one row.
CallerModel::Cycle CallerModel::not_waiting(double most, const CostCurve& curve) const {
  double low = 1;
  double high = std::max(1.0, std::min(most, callers()));
  for (int step = 0; step < 6; ++step) {
    const double middle = (low + high) / 2;
    (came_meanwhile(middle, curve.of(middle)) > middle ? low : high) = middle;
  }
  return gathering((low + high) / 2 < 1.1 ? 1 : (low + high) / 2, curve);
}

}  // namespace batchrpc::detail
