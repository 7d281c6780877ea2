#include "batch/batch_counts.hpp"

#include <algorithm>
#include <chrono>

namespace batchrpc::detail {
namespace {

std::int64_t second_of(TimePoint time) {
  return std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
}

std::uint64_t nanoseconds(Duration duration) {
  return static_cast<std::uint64_t>(std::max(Duration::zero(), duration).count());
}

}  // namespace

void BatchCounts::started(const TakenBatch& batch) {
  totals_.sizes.add(batch.rows);
  ++totals_.reasons.at(static_cast<std::size_t>(batch.reason));
  for (const auto& call : batch.calls)
    totals_.queue_wait.add(nanoseconds(batch.started - call->arrived));
  if (!any_) first_ = batch.started;
  any_ = true;
  const std::int64_t second = second_of(batch.started);
  Slot& slot = slots_.at(static_cast<std::size_t>(second) % slots_.size());
  if (slot.second != second) slot = {second, 0};
  slot.rows += batch.rows;
}

void BatchCounts::ended(const BatchOutcome& outcome, TimePoint started, TimePoint ended,
                        std::span<const TimePoint> arrivals) {
  ++totals_.batches;
  totals_.answered += outcome.answered;
  totals_.failed += outcome.failed;
  totals_.invalid += outcome.invalid;
  totals_.handler_runs += outcome.handler_runs;
  totals_.padding += outcome.padding;
  totals_.rows_copied += outcome.rows_copied;
  totals_.rows_in_place += outcome.rows_in_place;
  totals_.bytes_copied += outcome.bytes_copied;
  totals_.handler_time.add(nanoseconds(ended - started));
  for (const TimePoint arrived : arrivals)
    totals_.latency.add(nanoseconds(ended - arrived));
}

double BatchCounts::rows_per_second(TimePoint now) const {
  if (!any_) return 0;
  const std::int64_t second = second_of(now);
  std::uint64_t rows = 0;
  for (const Slot& slot : slots_) {
    if (slot.second >= 0 && second - slot.second <= static_cast<std::int64_t>(kSeconds))
      rows += slot.rows;
  }
  const TimePoint oldest(std::chrono::seconds(second - static_cast<std::int64_t>(kSeconds)));
  const std::chrono::duration<double> span = now - std::max(oldest, first_);
  return static_cast<double>(rows) / std::max(span.count(), 1e-3);
}

}  // namespace batchrpc::detail
