#include "node/call_table.hpp"

#include <algorithm>
#include <utility>

namespace batchrpc {
namespace {

constexpr std::uint32_t kLastGeneration = (std::uint32_t{1} << 30) - 1;

}  // namespace

std::uint64_t CallTable::add(PendingCall&& call) {
  if (first_free_ == kNone) {
    first_free_ = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back().next_free = kNone;
  }
  const std::uint32_t index = first_free_;
  Slot& slot = slots_[index];
  first_free_ = slot.next_free;
  earliest_ = std::min(earliest_, call.deadline);
  slot.call = std::move(call);
  slot.used = true;
  ++size_;
  return (std::uint64_t{slot.generation} << 32) | index;
}

CallTable::Slot* CallTable::slot_of(std::uint64_t id) noexcept {
  const std::size_t index = id & 0xffffffffU;
  if (index >= slots_.size()) return nullptr;
  Slot& slot = slots_[index];
  return slot.used && slot.generation == id >> 32 ? &slot : nullptr;
}

PendingCall CallTable::release(std::size_t index) {
  Slot& slot = slots_[index];
  PendingCall call = std::move(slot.call);
  slot.call.payload_target.reset();
  slot.used = false;
  slot.generation = slot.generation == kLastGeneration ? 1 : slot.generation + 1;
  slot.next_free = first_free_;
  first_free_ = static_cast<std::uint32_t>(index);
  --size_;
  return call;
}

std::optional<PendingCall> CallTable::take(std::uint64_t id) {
  Slot* slot = slot_of(id);
  if (slot == nullptr) return std::nullopt;
  return release(static_cast<std::size_t>(slot - slots_.data()));
}

PendingCall* CallTable::find(std::uint64_t id) noexcept {
  Slot* slot = slot_of(id);
  return slot != nullptr ? &slot->call : nullptr;
}

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
