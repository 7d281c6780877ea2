#include "batch/adaptive_wait.hpp"

#include <algorithm>
#include <cmath>

namespace batchrpc::detail {
namespace {

// A wait is tried if the model promises this gain, and kept while it promises any.
constexpr double kWorthTrying = 1.05;
constexpr int kSettling = 12;  // batches before a trial counts
constexpr int kTrial = 24;     // batches of a trial
constexpr int kLongestPause = 1024;
constexpr int kProbes = 32;  // least batches between probes

// Batches are made smaller only until the fixed cost is this part of the total, and the possible
// rate exceeds the arrival rate by this factor.
constexpr double kFixedPart = 0.05;
constexpr double kHeadroom = 1.25;

// How much of the planned latency is given up when a batch is late, and regained when one is not.
constexpr double kCaution = 0.04;
constexpr double kLeastPart = 0.05;
constexpr double kMostPart = 0.95;  // for the percentile; if half may be late, waits may be longer

constexpr double kOtherLoad = 1.5;  // the rate has changed by this factor

}  // namespace

AdaptiveWait::AdaptiveWait(LatencyTarget target, std::size_t max_size, std::size_t parallelism)
    : target_(target),
      max_size_(static_cast<double>(max_size)),
      parallelism_(static_cast<double>(parallelism)),
      choice_{.size = max_size, .min_size = 1, .wait = {}} {}

void AdaptiveWait::ended(TimePoint started, TimePoint now, std::size_t rows, std::size_t waiting,
                         std::span<const TimePoint> arrivals) {
  curve_.add(rows, now - started);
  callers_.ended(now, rows, waiting);
  learn_from(arrivals, now);
  if (is_waiting_) judge(rows, now - ended_);
  ended_ = now;
  choose();
}

// It is in balance when half of the permitted number are late.
void AdaptiveWait::learn_from(std::span<const TimePoint> arrivals, TimePoint now) {
  const auto late =
      static_cast<double>(std::count_if(arrivals.begin(), arrivals.end(), [&](TimePoint arrived) {
        return now - arrived > target_.latency;
      }));
  const double allowed = (1 - target_.percentile) / 2 * static_cast<double>(arrivals.size());
  part_ = std::clamp(part_ * (1 + kCaution * std::clamp(allowed - late, -5.0, 1.0)), kLeastPart,
                     kMostPart / target_.percentile);
}

// A size small enough that a row which just missed a batch is in time with the next one.
std::size_t AdaptiveWait::best_size() const {
  const double target = static_cast<double>(target_.latency.count()) * part_;
  const double in_time = curve_.rows_within(target / 2);
  const double efficient =
      curve_.per_row() > 0 ? curve_.fixed() / curve_.per_row() * (1 / kFixedPart - 1) : max_size_;
  const double needed = kHeadroom * callers_.rate() / parallelism_;
  const double spare = 1 - needed * curve_.per_row();
  const double enough = spare > 0 ? needed * curve_.fixed() / spare : max_size_;
  const double size = std::max({1.0, std::floor(in_time), std::ceil(efficient), std::ceil(enough)});
  return static_cast<std::size_t>(std::min(size, max_size_));
}

double AdaptiveWait::longest_wait(double rows) const {
  return static_cast<double>(target_.latency.count()) * part_ - curve_.of(rows);
}

void AdaptiveWait::choose() {
  choice_.size = best_size();
  const bool waits = is_waiting_;
  is_waiting_ = false;
  if (pause_ > 0) --pause_;
  const double change = callers_.rate() / std::max(rate_of_pause_, 1e-12);
  if (!waits && (change > kOtherLoad || change < 1 / kOtherLoad)) {
    pause_ = kFirstPause;
    next_pause_ = kShortestPause;
    rate_of_pause_ = callers_.rate();
  }
  choice_.min_size = 1;
  choice_.wait = {};
  if (parallelism_ > 1 || pause_ > 0 || choice_.size == 1) return;

  const double most = std::min(static_cast<double>(choice_.size), callers_.callers());
  const double without = waits ? callers_.not_waiting(max_size_, curve_).rate() : callers_.rate();
  CallerModel::Cycle best;
  double rate = 0;
  for (const double part : {1.0, 0.9, 0.75, 0.6, 0.5, 0.33}) {
    const double rows = std::floor(most * part);
    if (rows < 2) break;
    const CallerModel::Cycle cycle = callers_.gathering(rows, curve_);
    if (cycle.idle > longest_wait(rows) || cycle.rate() <= rate) continue;
    best = cycle;
    rate = cycle.rate();
  }
  if (without <= 0 || rate <= without * (waits ? 1 : kWorthTrying)) {
    if (waits) stop_waiting();
    return;
  }
  if (!waits) trial_ = {.rate_before = callers_.rate(), .promised = rate / without};
  is_waiting_ = true;
  if (is_time_to_probe()) return;
  choice_.min_size = static_cast<std::size_t>(best.rows);
  const double useful = best.cost + 2 * best.idle;
  choice_.wait = Duration(
      static_cast<Duration::rep>(std::max(1.0, std::min(longest_wait(best.rows), useful))));
}

// A batcher that always waits for the same number of rows does not learn the cost of fewer. So one
// batch starts without waiting.
bool AdaptiveWait::is_time_to_probe() {
  if (probe_in_ > 0) --probe_in_;
  if (probe_in_ > 0 || trial_.batches < kSettling + kTrial || !curve_.is_guess()) return false;
  probe_in_ = kProbes;
  return true;
}

void AdaptiveWait::judge(std::size_t rows, Duration span) {
  if (trial_.batches == kSettling + kTrial) return;
  if (++trial_.batches <= kSettling) return;
  trial_.rows += static_cast<double>(rows);
  trial_.time += static_cast<double>(span.count());
  if (trial_.batches < kSettling + kTrial) return;
  const double factor = trial_.rows / trial_.time / trial_.rate_before;
  if (factor < 1 + (trial_.promised - 1) / 3) stop_waiting();
}

void AdaptiveWait::stop_waiting() {
  pause_ = next_pause_;
  next_pause_ = std::min(2 * next_pause_, kLongestPause);
  rate_of_pause_ = callers_.rate();
}

}  // namespace batchrpc::detail
