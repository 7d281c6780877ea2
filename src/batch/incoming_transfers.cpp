#include "batch/incoming_transfers.hpp"

#include <algorithm>
#include <utility>

#include "base/time.hpp"

namespace batchrpc::detail {
namespace {

// One is accumulated while the next arrives.
constexpr std::size_t kOfReducer = 2;
// A call of which less than this comes in Room::stalls_after has stalled.
constexpr std::size_t kProgress = 64 * 1024;

}  // namespace

// Computes what may_come() needs once for all callers, of which there may be many.
IncomingTransfers::Load IncomingTransfers::load(const Room& room) const {
  Load load;
  for (const auto& [caller, share] : shares_)
    load.callers += share.moving_calls > 0 ? 1 : 0;
  for (const bool is_other : {false, true}) {
    auto& [fair, bytes] = load.taken[is_other ? 1 : 0];
    fair = room.max_bytes / std::max<std::size_t>(load.callers + (is_other ? 1 : 0), 1);
    for (const auto& [caller, share] : shares_)
      bytes += std::min(share.moving_bytes, fair);
  }
  return load;
}

bool IncomingTransfers::may_come(const IncomingTransfer& transfer, const Room& room,
                                 const Load& load) const {
  const auto at = shares_.find(transfer.caller.get());
  const Share own = at == shares_.end() ? Share() : at->second;
  const bool is_other = own.moving_calls == 0;
  const std::size_t others = load.callers - (is_other ? 0 : 1);
  if (room.one_by_one && own.calls + others + room.to_accumulate >= kOfReducer) return false;
  const auto& [fair, bytes] = load.taken[is_other ? 1 : 0];
  const std::size_t of_others = bytes - std::min(own.moving_bytes, fair);
  const std::size_t before = room.waiting_bytes + own.bytes + of_others;
  return before == 0 || before + transfer.bytes <= room.max_bytes;
}

void IncomingTransfers::come(IncomingTransfer& transfer, const Room& room) {
  Share& share = shares_[transfer.caller.get()];
  transfer.place = moving_.insert(moving_.end(), &transfer);
  transfer.seen_at = room.now;
  transfer.held = transfer.over = false;
  ++share.calls;
  ++share.moving_calls;
  share.bytes += transfer.bytes;
  share.moving_bytes += transfer.bytes;
}

void IncomingTransfers::stop_moving(IncomingTransfer& transfer) {
  moving_.erase(transfer.place);
  Share& share = shares_[transfer.caller.get()];
  --share.moving_calls;
  share.moving_bytes -= transfer.bytes;
}

// Each call is looked at once in `stalls_after`.
void IncomingTransfers::look_for_stalled(const Room& room) {
  while (next_stall(room) <= room.now) {
    IncomingTransfer& transfer = *moving_.front();
    const std::size_t received = transfer.gate->received();
    if (received < transfer.seen + kProgress) {
      stop_moving(transfer);
      transfer.stalled = true;
      continue;
    }
    transfer.seen = received;
    transfer.seen_at = room.now;
    moving_.splice(moving_.end(), moving_, transfer.place);
  }
}

bool IncomingTransfers::any_moving(const Room& room) {
  look_for_stalled(room);
  return !moving_.empty();
}

TimePoint IncomingTransfers::next_stall(const Room& room) const noexcept {
  return moving_.empty() ? TimePoint::max() : after(moving_.front()->seen_at, room.stalls_after);
}

void IncomingTransfers::begin(IncomingTransfer& transfer, const Room& room) {
  look_for_stalled(room);
  if (held_.empty() && may_come(transfer, room, load(room))) return come(transfer, room);
  held_.add(transfer.caller.get(), {&transfer, transfer.gate});
  transfer.held = true;
  transfer.over = false;
}

void IncomingTransfers::end(IncomingTransfer& transfer) {
  transfer.over = true;
  if (transfer.held) {
    held_.remove_if([&transfer](const Held& held) { return held.transfer == &transfer; });
    return;
  }
  if (!transfer.stalled) stop_moving(transfer);
  const auto share = shares_.find(transfer.caller.get());
  share->second.bytes -= transfer.bytes;
  if (--share->second.calls == 0) shares_.erase(share);
}

// A caller whose next call waits for its own earlier ones holds up no others.
void IncomingTransfers::let_come(const Room& room, Gates& to) {
  look_for_stalled(room);
  while (!held_.empty()) {
    const Load now = load(room);
    bool others_wait = false;
    auto next = held_.take_next_if([&](const Held& held) {
      if (others_wait) return false;
      if (may_come(*held.transfer, room, now)) return true;
      others_wait = !shares_.contains(held.transfer->caller.get());
      return false;
    });
    if (!next) return;
    come(*next->transfer, room);
    to.push_back(std::move(next->gate));
  }
}

IncomingTransfers::Gates IncomingTransfers::release_held() {
  Gates gates;
  held_.for_each([&gates](const Held& held) { gates.push_back(held.gate); });
  held_ = {};
  return gates;
}

}  // namespace batchrpc::detail
