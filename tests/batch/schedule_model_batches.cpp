#include <algorithm>
#include <tuple>

#include "batch/schedule_model.hpp"

// When a batch must start, and of what.
namespace batchrpc::test {
namespace {

using Place = ScheduledCall::Place;

int rank_of(const ScheduledCall& call) { return call.caller ? call.caller->rank : -2; }

int highest_priority(const ScheduledCalls& calls) {
  int highest = calls.front()->priority();
  for (const ScheduledCall* call : calls)
    highest = std::max(highest, call->priority());
  return highest;
}

}  // namespace

std::set<int> BatchModel::keys() const {
  std::set<int> keys;
  for (const ScheduledCall* call : queue_)
    keys.insert(call->key());
  return keys;
}

ScheduledCalls BatchModel::lane(int key) const {
  ScheduledCalls lane;
  for (ScheduledCall* call : queue_) {
    if (call->key() == key) lane.push_back(call);
  }
  return lane;
}

// Whether every member that lives has a call in the queue.
bool BatchModel::is_complete() const {
  const auto waits = [this](const std::string& name) {
    return std::any_of(queue_.begin(), queue_.end(), [&](const ScheduledCall* call) {
      return call->caller ? call->caller->name == name : name == "root";
    });
  };
  return std::all_of(options_.all_of.begin(), options_.all_of.end(),
                     [&](const std::string& name) { return !is_live_(name) || waits(name); });
}

std::optional<BatchReason> BatchModel::due(const ScheduledCalls& lane, TimePoint now) const {
  const std::size_t rows = rows_of(lane);
  const auto& preferred = options_.preferred_sizes;
  if (rows >= in_force_.size) {
    return !preferred.empty() && preferred.back() < options_.max_size ? BatchReason::preferred
                                                                      : BatchReason::size;
  }
  if (lane.front()->flushed) return lane.front()->flushed;
  if (is_grouped() && is_complete()) return BatchReason::all;
  if (in_force_.min_size > 1 && rows >= in_force_.min_size) return BatchReason::min_size;
  const bool waits = in_force_.wait > Duration::zero();
  const auto arrived_before = [](const ScheduledCall* a, const ScheduledCall* b) {
    return a->arrived < b->arrived;
  };
  const ScheduledCall& first = **std::min_element(lane.begin(), lane.end(), arrived_before);
  if (waits && now - first.arrived >= in_force_.wait) return BatchReason::wait;
  if (!waits && in_force_.min_size <= 1 && !is_grouped()) return BatchReason::idle;
  if (draining_) return BatchReason::flush;
  return std::nullopt;
}

bool BatchModel::is_stuck() const {
  return !paused_ && running_.empty() && !queue_.empty() && !held_.empty();
}

bool BatchModel::is_late(TimePoint now) const {
  if (paused_ || queue_.empty() || running_.size() >= options_.parallelism) return false;
  return next_key(now).has_value();
}

// Of the keys that are due: one that others were preferred to too often, else the one with the
// highest priority, and of these the one whose call came first.
std::optional<int> BatchModel::next_key(TimePoint now) const {
  std::optional<int> best;
  std::tuple<bool, int, std::ptrdiff_t> best_rank;
  for (const int key : keys()) {
    const ScheduledCalls calls = lane(key);
    if (!due(calls, now)) continue;
    const auto passed = passed_.find(key);
    const bool first = passed != passed_.end() && passed->second >= options_.max_overtaking;
    const std::tuple rank(!first, first ? 0 : -highest_priority(calls),
                          std::find(queue_.begin(), queue_.end(), calls.front()) - queue_.begin());
    if (best && best_rank < rank) continue;
    best = key;
    best_rank = rank;
  }
  return best;
}

// The oldest, where it was overtaken too often; else the first of those of the highest priority.
ScheduledCall& BatchModel::next_of(const ScheduledCalls& lane) const {
  if (lane.front()->overtaken >= options_.max_overtaking) return *lane.front();
  const int highest = highest_priority(lane);
  return **std::find_if(lane.begin(), lane.end(), [highest](const ScheduledCall* call) {
    return call->priority() == highest;
  });
}

// A larger preferred size is padded up to when more than half of it is there.
std::size_t BatchModel::cut(std::size_t rows) const {
  if (rows >= in_force_.size) return in_force_.size;
  std::size_t below = 0;
  for (const std::size_t size : options_.preferred_sizes) {
    if (size >= rows) return size == rows || below == 0 || rows > size / 2 ? rows : below;
    below = size;
  }
  return rows;
}

void BatchModel::take(ModelBatch& batch, int key, std::size_t rows) {
  std::size_t taken = 0;
  while (taken < rows) {
    const ScheduledCalls calls = lane(key);
    if (calls.empty()) break;
    ScheduledCall& next = next_of(calls);
    if (taken > 0 && taken + next.rows.size() > rows) break;
    taken += next.rows.size();
    leave_queue(next);
    batch.calls.push_back(&next);
  }
}

ModelBatch& BatchModel::begin(TimePoint now) {
  expire(now);
  const std::optional<int> key = paused_ ? std::nullopt : next_key(now);
  if (key) return start(*key, *due(lane(*key), now), now);
  complain_("a batch starts that is not due");
  running_.push_back(std::make_unique<ModelBatch>());
  running_.back()->options = shared_options_;
  return *running_.back();
}

ModelBatch& BatchModel::begin_for_room(int key, TimePoint now) {
  expire(now);
  if (!lacked_room_ || lane(key).empty()) {
    complain_("a batch starts for room, and there is some");
    return begin(now);
  }
  return start(key, BatchReason::full, now);
}

ModelBatch& BatchModel::start(int key, BatchReason reason, TimePoint now) {
  running_.push_back(std::make_unique<ModelBatch>());
  ModelBatch& batch = *running_.back();
  batch.started = now;
  batch.options = shared_options_;
  batch.reason = reason;
  const ScheduledCalls all = lane(key);
  std::size_t accumulated = 0;
  for (const ScheduledCall* call : all)
    accumulated += call->accumulated ? call->rows.size() : 0;
  ScheduledCalls in_queue = queue_;
  const bool complete = is_grouped() && is_complete();
  take(batch, key, std::max(cut(rows_of(all)), accumulated));
  passed_[key] = 0;
  for (const int other : keys()) {
    if (other != key && highest_priority(lane(other)) < highest_priority(all))
      passed_[other] += batch.calls.size();
  }
  if (reason == BatchReason::min_size) {
    for (ScheduledCall* call : lane(key))
      call->flushed = reason;
  }
  if (complete) flush_queue(BatchReason::all);
  if (options_.order_by_peer) {
    std::sort(batch.calls.begin(), batch.calls.end(), [&](ScheduledCall* a, ScheduledCall* b) {
      const auto place = [&](ScheduledCall* call) {
        return std::find(in_queue.begin(), in_queue.end(), call) - in_queue.begin();
      };
      return std::tuple(rank_of(*a), place(a)) < std::tuple(rank_of(*b), place(b));
    });
  }
  for (ScheduledCall* call : batch.calls) {
    call->place = Place::batch;
    call->batch = &batch;
  }
  batch.open = batch.calls.size();
  admit_held();
  return batch;
}

void BatchModel::completed(ScheduledCall& call) {
  if (call.batch == nullptr || --call.batch->open > 0) return;
  const auto batch = std::find_if(running_.begin(), running_.end(),
                                  [&](const auto& other) { return other.get() == call.batch; });
  over_.push_back(std::move(*batch));
  running_.erase(batch);
}

// The first that it does not have, if that is of the next batch.
ScheduledCall* BatchModel::next_to_accumulate() const {
  if (options_.order_by_peer || paused_ || !running_.empty()) return nullptr;
  std::size_t rows = 0;
  for (ScheduledCall* call : queue_) {
    rows += call->rows.size();
    if (!call->accumulated) return rows <= in_force_.size ? call : nullptr;
  }
  return nullptr;
}

}  // namespace batchrpc::test
