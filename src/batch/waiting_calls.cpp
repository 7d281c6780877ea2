#include "batch/waiting_calls.hpp"

#include <algorithm>

namespace batchrpc::detail {

void WaitingCalls::configure(const BatchOptions& options, const BatchGroup::IsLive& is_live) {
  max_rows_ = options.max_queue;
  max_bytes_ = options.max_queue_bytes;
  holds_ = options.on_full == OnFull::wait;
  if (!is_live) return;
  group_.configure(options.all_of, is_live, [this](const auto& add) { queue_.for_each(add); });
}

WaitingCalls::Room WaitingCalls::room_for(const BatchCall& call, bool let_in) const {
  Room room;
  std::size_t queued = queue_.rows();
  std::size_t held = held_.rows();
  const std::size_t needed = bytes() + call.bytes;
  if (!let_in && needed > max_bytes_) {
    room.limit = std::to_string(max_bytes_) + " bytes, BatchOptions::max_queue_bytes";
    const auto find_in = [&](const auto& calls, std::size_t& rows) {
      room.giving_way = calls.who_gives_way(call, &CallerShares::Share::bytes, needed - max_bytes_);
      for (const BatchCall* other : room.giving_way)
        rows -= other->rows;
    };
    find_in(queue_, queued);
    if (room.giving_way.empty()) find_in(held_, held);
    room.refused = room.giving_way.empty();
    if (room.refused) return room;
  }
  const bool fits = queued + call.rows <= max_rows_;
  room.held = holds_ && (!fits || held > 0);
  const std::size_t rows = (room.held ? held : queued) + call.rows;
  if (rows <= max_rows_) return room;
  room.limit = std::to_string(max_rows_) + " rows, BatchOptions::max_queue" +
               (room.held ? ", and as many of held callers" : "");
  room.refused = !room.giving_way.empty();  // those would not be enough
  if (room.refused) return room;
  const std::size_t excess = rows - max_rows_;
  const auto measure = &CallerShares::Share::rows;
  room.giving_way = room.held ? held_.who_gives_way(call, measure, excess)
                              : queue_.who_gives_way(call, measure, excess);
  room.refused = room.giving_way.empty();
  return room;
}

BatchLane& WaitingCalls::add(std::unique_ptr<BatchCall> call) {
  group_.add(*call);
  const bool flushed = call->flushed;
  BatchLane& lane = queue_.add(std::move(call));
  if (flushed) lane.flush();
  return lane;
}

void WaitingCalls::admit_held() {
  while (const BatchCall* next = held_.next()) {
    if (queue_.rows() + next->rows > max_rows_) return;
    add(held_.take_next());
  }
}

BatchCalls WaitingCalls::take(BatchLane& lane, std::size_t rows, std::size_t max_overtaking) {
  BatchCalls taken;
  queue_.take(lane, rows, max_overtaking, taken);
  left_queue(taken);
  return taken;
}

BatchCalls WaitingCalls::remove_expired(TimePoint now) {
  BatchCalls gone;
  queue_.remove_expired(now, gone);
  left_queue(gone);
  held_.remove_expired(now, gone);
  return gone;
}

void WaitingCalls::flush() {
  queue_.for_each_lane([](BatchLane& lane) { lane.flush(); });
  held_.flush();
}

}  // namespace batchrpc::detail
