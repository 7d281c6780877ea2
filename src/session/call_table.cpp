#include "session/call_table.hpp"

#include <algorithm>
#include <utility>

namespace batchrpc {
std::vector<PendingCall> CallTable::take_expired(TimePoint now) {
  std::vector<PendingCall> expired;
  earliest_ = TimePoint::max();
  for (std::size_t index = 0; index < slots_.size(); ++index) {
    if (!slots_[index].used) continue;
    const TimePoint deadline = slots_[index].call.deadline;
    if (deadline <= now) {
      expired.push_back(release(index));
    } else {
      earliest_ = std::min(earliest_, deadline);
    }
  }
  return expired;
}

PendingCall CallTable::release(std::size_t index) {
  PendingCall call = std::move(slots_[index].call);
  free_slot(index, call.bytes);
  return call;
}

// Frees the memory of a burst of calls. Ids that were used are not used again.
void CallTable::shrink() {
  std::uint32_t last = first_generation_;
  for (const Slot& slot : slots_)
    last = std::max(last, slot.generation);
  first_generation_ = last;  // no call has had this one yet
  slots_ = std::vector<Slot>();
  first_free_ = kNone;
}

std::vector<PendingCall> CallTable::take_all() {
  std::vector<PendingCall> all;
  all.reserve(size_);
  for (std::size_t index = 0; index < slots_.size(); ++index) {
    if (slots_[index].used) all.push_back(release(index));
  }
  slots_.clear();
  slots_.shrink_to_fit();
  first_free_ = kNone;
  earliest_ = TimePoint::max();
  return all;
}

}  // namespace batchrpc
