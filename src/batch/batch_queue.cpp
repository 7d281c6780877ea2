#include "batch/batch_queue.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace batchrpc::detail {

// --- a lane

void BatchLane::add(std::unique_ptr<BatchCall> call) {
  call->place = arrived_++;
  call->early = call->arrived < last_arrival_ && !empty();
  if (call->early) {
    first_arrival_ = std::min(first_arrival(), call->arrived);
    ++early_;
  }
  last_arrival_ = std::max(last_arrival_, call->arrived);
  if (empty() && !levels_.empty()) levels_.front().priority = call->priority;
  ++calls_;
  rows_ += call->rows;
  if (call->deadline) earliest_deadline_ = std::min(earliest_deadline_, *call->deadline);
  auto level = levels_.begin();
  while (level != levels_.end() && level->priority > call->priority)
    ++level;
  if (level == levels_.end() || level->priority != call->priority) {
    level = levels_.insert(level, Level(call->priority));
  }
  level->calls.push_back(std::move(call));
}

std::size_t BatchLane::oldest_level() const {
  std::size_t oldest = 0;
  for (std::size_t i = 1; i < levels_.size(); ++i) {
    if (levels_[i].calls.front()->place < levels_[oldest].calls.front()->place) oldest = i;
  }
  return oldest;
}

const BatchCall& BatchLane::oldest() const { return *levels_[oldest_level()].calls.front(); }

// The oldest call's place is the number of calls that came before it, and all of these have left.
// Any other departures overtook it. No other call can have been overtaken more often.
void BatchLane::take(std::size_t rows, std::size_t max_overtaking, BatchCalls& to) {
  std::size_t taken = 0;
  while (!empty()) {
    std::size_t level = 0;
    if (levels_.size() > 1) {
      const std::size_t oldest = oldest_level();
      if (left_ - levels_[oldest].calls.front()->place >= max_overtaking) level = oldest;
    }
    const std::size_t next = levels_[level].calls.front()->rows;
    if (taken > 0 && taken + next > rows) break;
    taken += next;
    to.push_back(pop(level));
    if (taken >= rows) break;
  }
  if (empty()) earliest_deadline_ = TimePoint::max();
  look_for_first_arrival();
}

std::unique_ptr<BatchCall> BatchLane::pop(std::size_t level) {
  auto& calls = levels_[level].calls;
  std::unique_ptr<BatchCall> call = std::move(calls.front());
  calls.pop_front();
  left(*call);
  drop_empty_levels();
  return call;
}

// The last one stays, to keep its memory.
void BatchLane::drop_empty_levels() {
  for (std::size_t i = levels_.size(); i-- > 0 && levels_.size() > 1;) {
    if (levels_[i].calls.empty()) levels_.erase(levels_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void BatchLane::left(const BatchCall& call) noexcept {
  --calls_;
  ++left_;
  rows_ -= call.rows;
  if (call.early) --early_;
}

void BatchLane::look_for_deadlines() {
  earliest_deadline_ = TimePoint::max();
  for_each([this](const BatchCall& call) {
    if (call.deadline && !call.pinned)
      earliest_deadline_ = std::min(earliest_deadline_, *call.deadline);
  });
}

void BatchLane::look_for_first_arrival() {
  if (early_ == 0) return;
  first_arrival_ = TimePoint::max();
  for_each(
      [this](const BatchCall& call) { first_arrival_ = std::min(first_arrival_, call.arrived); });
}

// --- all lanes

BatchLane& BatchQueue::lane_of(const std::string& key) {
  if (last_ != nullptr && last_->key() == key) return *last_;
  last_ = &lanes_.try_emplace(key, key).first->second;
  return *last_;
}

BatchLane& BatchQueue::add(std::unique_ptr<BatchCall> call) {
  ++calls_;
  rows_ += call->rows;
  bytes_ += call->bytes;
  shares_.add(*call);
  if (call->deadline) earliest_deadline_ = std::min(earliest_deadline_, *call->deadline);
  call->number = arrived_++;
  BatchLane& lane = lane_of(call->key);
  lane.add(std::move(call));
  return lane;
}

void BatchQueue::take(BatchLane& lane, std::size_t rows, std::size_t max_overtaking,
                      BatchCalls& to) {
  const std::size_t before = to.size();
  const int priority = lane.priority();
  lane.take(rows, max_overtaking, to);
  lane.passed = 0;
  for (std::size_t i = before; i < to.size(); ++i)
    count_out(*to[i]);
  if (empty()) earliest_deadline_ = TimePoint::max();
  if (lanes_.size() == 1) return;
  for (auto& [key, other] : lanes_) {
    if (&other != &lane && !other.empty() && other.priority() < priority)
      other.passed += to.size() - before;
  }
  drop_empty_lanes();
}

void BatchQueue::remove_expired(TimePoint now, BatchCalls& to) {
  if (earliest_deadline_ > now) return;
  remove_if(
      [now](const BatchCall& call) {
        return !call.pinned && call.deadline && *call.deadline <= now;
      },
      to);
  earliest_deadline_ = TimePoint::max();
  for (const auto& [key, lane] : lanes_)
    earliest_deadline_ = std::min(earliest_deadline_, lane.earliest_deadline());
}

BatchCall* BatchQueue::next_to_accumulate() const {
  return last_ != nullptr && accumulated_ < last_->calls() ? &last_->at(accumulated_) : nullptr;
}

void BatchQueue::accumulated(BatchCall& call) {
  call.accumulated = true;
  ++accumulated_;
  accumulated_rows_ += call.rows;
  shares_.forget_bytes(call);
  bytes_ -= std::exchange(call.bytes, 0);
}

void BatchQueue::count_out(const BatchCall& call) {
  --calls_;
  rows_ -= call.rows;
  bytes_ -= call.bytes;
  shares_.remove(call);
  if (!call.accumulated) return;
  --accumulated_;
  accumulated_rows_ -= call.rows;
}

void BatchQueue::drop_empty_lanes() {
  if (lanes_.size() <= kKeptLanes) return;
  std::erase_if(lanes_, [this](const auto& entry) {
    if (!entry.second.empty()) return false;
    if (last_ == &entry.second) last_ = nullptr;
    return true;
  });
}

}  // namespace batchrpc::detail
