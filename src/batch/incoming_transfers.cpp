#include "batch/incoming_transfers.hpp"

#include <utility>

namespace batchrpc::detail {
namespace {

// One is accumulated while the next arrives.
constexpr std::size_t kOfReducer = 2;

}  // namespace

bool IncomingTransfers::may_come(const IncomingTransfer& transfer,
                                 const Room& room) const noexcept {
  if (room.one_by_one && coming_ + room.to_accumulate >= kOfReducer) return false;
  const std::size_t before = room.waiting_bytes + bytes_;
  return before == 0 || before + transfer.bytes <= room.max_bytes;
}

void IncomingTransfers::come(IncomingTransfer& transfer) noexcept {
  transfer.held = false;
  ++coming_;
  bytes_ += transfer.bytes;
}

void IncomingTransfers::begin(IncomingTransfer& transfer, const PeerIdentity* caller,
                              const Room& room) {
  if (held_.empty() && may_come(transfer, room)) return come(transfer);
  transfer.held = true;
  held_.add(caller, {&transfer, transfer.gate});
}

void IncomingTransfers::end(IncomingTransfer& transfer) {
  transfer.over = true;
  if (transfer.held) {
    held_.remove_if([&transfer](const Held& held) { return held.transfer == &transfer; });
  } else {
    --coming_;
    bytes_ -= transfer.bytes;
  }
}

void IncomingTransfers::let_come(const Room& room, Gates& to) {
  while (!held_.empty() && may_come(*held_.next().transfer, room)) {
    Held next = held_.take_next();
    come(*next.transfer);
    to.push_back(std::move(next.gate));
  }
}

IncomingTransfers::Gates IncomingTransfers::release_held() {
  Gates gates;
  held_.for_each([&gates](const Held& held) { gates.push_back(held.gate); });
  held_ = {};
  return gates;
}

}  // namespace batchrpc::detail
