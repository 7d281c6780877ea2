#include "batch/batch_queue.hpp"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

namespace batchrpc::detail {

// --- a lane

void BatchLane::add(std::unique_ptr<BatchCall> call) {
  call->place = arrived_++;
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

// The oldest call's place counts those that came before it, and all of these have left: what else
// has left has overtaken it. No other call can have been overtaken by more.
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
}

std::unique_ptr<BatchCall> BatchLane::pop(std::size_t level) {
  auto& calls = levels_[level].calls;
  std::unique_ptr<BatchCall> call = std::move(calls.front());
  calls.pop_front();
  left(*call);
  drop_empty_levels();
  return call;
}

// The last one stays: it has memory.
void BatchLane::drop_empty_levels() {
  for (std::size_t i = levels_.size(); i-- > 0 && levels_.size() > 1;) {
    if (levels_[i].calls.empty()) levels_.erase(levels_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void BatchLane::left(const BatchCall& call) noexcept {
  --calls_;
  ++left_;
  rows_ -= call.rows;
}

void BatchLane::look_for_deadlines() {
  earliest_deadline_ = TimePoint::max();
  for_each([this](const BatchCall& call) {
    if (call.deadline && !call.pinned)
      earliest_deadline_ = std::min(earliest_deadline_, *call.deadline);
  });
}

// --- all of them

BatchLane& BatchQueue::lane_of(const std::string& key) {
  if (last_ != nullptr && last_->key() == key) return *last_;
  last_ = &lanes_.try_emplace(key, key).first->second;
  return *last_;
}

void BatchQueue::add(std::unique_ptr<BatchCall> call) {
  ++calls_;
  rows_ += call->rows;
  bytes_ += call->bytes;
  rows_of_[call->caller.get()] += call->rows;
  call->number = arrived_++;
  BatchLane& lane = lane_of(call->key);
  lane.add(std::move(call));
}

void BatchQueue::take(BatchLane& lane, std::size_t rows, std::size_t max_overtaking,
                      BatchCalls& to) {
  const std::size_t before = to.size();
  const int priority = lane.priority();
  lane.take(rows, max_overtaking, to);
  lane.passed = 0;
  for (std::size_t i = before; i < to.size(); ++i)
    count_out(*to[i]);
  if (lanes_.size() == 1) return;
  for (auto& [key, other] : lanes_) {
    if (&other != &lane && !other.empty() && other.priority() < priority)
      other.passed += to.size() - before;
  }
  drop_empty_lanes();
}

void BatchQueue::remove_expired(TimePoint now, BatchCalls& to) {
  if (earliest_deadline() > now) return;
  remove_if(
      [now](const BatchCall& call) {
        return !call.pinned && call.deadline && *call.deadline <= now;
      },
      to);
}

TimePoint BatchQueue::earliest_deadline() const {
  TimePoint earliest = TimePoint::max();
  for (const auto& [key, lane] : lanes_)
    earliest = std::min(earliest, lane.earliest_deadline());
  return earliest;
}

bool BatchQueue::make_way(const PeerIdentity* caller, std::size_t rows, BatchCalls& to) {
  // Of several the same one in each run, wherever they lie in memory.
  const auto place = [](const auto& entry) {
    const auto& [peer, count] = entry;
    return peer == nullptr
               ? std::tuple(count, -2, std::string_view(), std::uint64_t{0})
               : std::tuple(count, peer->rank, std::string_view(peer->name), peer->incarnation);
  };
  const auto most =
      std::max_element(rows_of_.begin(), rows_of_.end(),
                       [&](const auto& a, const auto& b) { return place(a) < place(b); });
  if (most == rows_of_.end()) return false;
  const auto own = rows_of_.find(caller);
  const std::size_t own_rows = own == rows_of_.end() ? 0 : own->second;
  if (own_rows + rows >= most->second) return false;
  const BatchCall* newest = nullptr;
  for_each([&](const BatchCall& call) {
    if (call.caller.get() != most->first || call.pinned) return;
    if (newest == nullptr || call.number > newest->number) newest = &call;
  });
  if (newest == nullptr || newest->rows < rows) return false;
  remove_if([newest](const BatchCall& call) { return &call == newest; }, to);
  return true;
}

void BatchQueue::count_out(const BatchCall& call) {
  --calls_;
  rows_ -= call.rows;
  bytes_ -= call.bytes;
  const auto caller = rows_of_.find(call.caller.get());
  caller->second -= call.rows;
  if (caller->second == 0 && rows_of_.size() > kKeptCallers) rows_of_.erase(caller);
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
