#include "batch/batch_starts.hpp"

#include <algorithm>
#include <tuple>

namespace batchrpc::detail {
namespace {

// Follows changes within about ten batches.
Duration moving_average(Duration before, Duration latest) {
  return before == Duration::zero() ? latest : before + (latest - before) / 8;
}

}  // namespace

void BatchStarts::configure(const BatchOptions& before, const BatchOptions& now) {
  parallelism_ = now.parallelism;
  max_overtaking_ = now.max_overtaking;
  const LatencyTarget& target = now.latency_target;
  if (target.latency == Duration::zero()) {
    adaptive_.reset();
  } else if (!adaptive_ || target.latency != before.latency_target.latency ||
             target.percentile != before.latency_target.percentile ||
             now.max_size != before.max_size || now.parallelism != before.parallelism) {
    adaptive_.emplace(target, now.max_size, now.parallelism);
  }
  triggers_ = BatchTriggers(now);
  if (adaptive_) triggers_.adopt(adaptive_->choice());
}

std::optional<BatchReason> BatchStarts::due(const BatchLane& lane, bool group_complete,
                                            TimePoint now) const {
  auto reason = triggers_.due(lane, group_complete, now);
  if (!reason && draining_) reason = BatchReason::flush;
  return reason;
}

TimePoint BatchStarts::next_due(WaitingCalls& waiting, TimePoint now) const {
  TimePoint when = TimePoint::max();
  if (paused_ || !has_free_slot()) return when;
  waiting.for_each_lane([&](const BatchLane& lane) {
    const TimePoint at = triggers_.due_at(lane);
    if (at > now) when = std::min(when, at);
  });
  return when;
}

BatchStarts::Starting BatchStarts::start(WaitingCalls& waiting, TimePoint now) {
  if (paused_ || waiting.is_queue_empty() || !has_free_slot()) return {};
  std::size_t batches = 0;
  bool complete = true;
  waiting.for_each_lane([&](const BatchLane& lane) {
    const auto reason = due(lane, waiting.group_complete(), now);
    if (!reason) return;
    batches += triggers_.batches(lane.rows());
    complete = complete && (*reason == BatchReason::size || *reason == BatchReason::preferred ||
                            *reason == BatchReason::all);
  });
  Starting starting{.complete = complete};
  while (has_free_slot() && starting_ < batches) {
    ++starting_;
    ++starting.batches;
  }
  return starting;
}

// Among the due lanes, returns the one with the highest priority, or one that was passed too often.
BatchStarts::DueLane BatchStarts::next_lane(WaitingCalls& waiting, TimePoint now) const {
  DueLane best;
  const auto rank = [this](const BatchLane& lane) {
    const bool passed = lane.passed >= max_overtaking_;
    return std::tuple(!passed, passed ? 0 : ~lane.priority(), lane.oldest().number);
  };
  waiting.for_each_lane([&](BatchLane& lane) {
    const auto reason = due(lane, waiting.group_complete(), now);
    if (!reason) return;
    if (best.lane == nullptr || rank(lane) < rank(*best.lane)) best = {&lane, *reason};
  });
  return best;
}

TakenBatch BatchStarts::take(WaitingCalls& waiting, TimePoint now) {
  TakenBatch batch;
  --starting_;
  const bool may_run = !paused_ && running_ < parallelism_;  // these may have changed
  const DueLane next = may_run ? next_lane(waiting, now) : DueLane();
  if (next.lane == nullptr) return batch;
  const bool all = waiting.group_complete();
  // Accumulated rows belong to this batch, whatever its size is now.
  const std::size_t rows = std::max(triggers_.cut(next.lane->rows()), waiting.accumulated_rows());
  // Rows that preferred sizes cut off were due as well.
  if (next.reason == BatchReason::min_size) next.lane->flush(BatchReason::min_size);
  batch.calls = waiting.take(*next.lane, rows, max_overtaking_);
  // No more rows are to come for the other lanes either.
  if (all) waiting.for_each_lane([](BatchLane& other) { other.flush(BatchReason::all); });
  for (const auto& call : batch.calls)
    batch.rows += call->rows;
  batch.reason = next.reason;
  batch.started = now;
  ++running_;
  return batch;
}

void BatchStarts::ended(TimePoint started, TimePoint now, std::size_t rows, std::size_t waiting,
                        std::span<const TimePoint> arrivals) {
  --running_;
  batch_time_ = moving_average(batch_time_, now - started);
  if (!adaptive_) return;
  adaptive_->ended(started, now, rows, waiting, arrivals);
  triggers_.adopt(adaptive_->choice());
}

void BatchStarts::flush_oldest(WaitingCalls& waiting, TimePoint now) const {
  BatchLane* oldest = nullptr;
  bool any_due = false;
  waiting.for_each_lane([&](BatchLane& lane) {
    any_due = any_due || due(lane, waiting.group_complete(), now);
    if (oldest == nullptr || lane.oldest().number < oldest->oldest().number) oldest = &lane;
  });
  if (oldest != nullptr && !any_due) oldest->flush(BatchReason::full);
}

}  // namespace batchrpc::detail
