#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "batchrpc/base/block_pool.hpp"
#include "batchrpc/call/remote_call.hpp"
#include "call/nested_call.hpp"
#include "recording/call_probe.hpp"
#include "session/output_queue.hpp"

namespace batchrpc {

/// Data that only few calls have.
struct CallBelongings : detail::Pooled {
  std::unique_ptr<detail::PayloadTarget> payload_target{};
  std::optional<NestedCall> nested{};  ///< set for a call that was made by a handler
  std::vector<std::shared_ptr<DeliveryHook>> delivery_hooks{};
  std::shared_ptr<detail::CallProbe> probe{};  ///< null: the call is not recorded
};

/// A call that waits for its reply.
struct PendingCall {
  detail::ReplyHandler handler;
  TimePoint deadline = TimePoint::max();
  TimePoint called_at{};
  std::uint64_t called_ticks = 0;  ///< the same time in Loop::ticks()
  std::uint64_t id = 0;            ///< assigned by the table
  OutputQueue::Place place{};      ///< the place of its frame in the connection's output
  std::uint32_t function = 0;
  bool waited = false;      ///< it waited for a connection, or behind other output
  std::uint64_t bytes = 0;  ///< the size of its frame and payloads
  std::shared_ptr<const detail::KeptByCall> kept{};
  std::unique_ptr<CallBelongings> belongings{};  ///< null: it has none

  [[nodiscard]] CallBelongings& own() {
    if (!belongings) belongings = std::make_unique<CallBelongings>();
    return *belongings;
  }
  [[nodiscard]] std::span<const std::shared_ptr<DeliveryHook>> delivery_hooks() const noexcept {
    if (!belongings) return {};
    return belongings->delivery_hooks;
  }
  [[nodiscard]] detail::CallProbe* probe() const noexcept {
    return belongings ? belongings->probe.get() : nullptr;
  }
};

/// The calls that wait on one session, by id. An id is the index and generation of a slot, so
/// neither a lock-free structure nor a hash is needed. Not thread-safe: the session locks.
class CallTable {
 public:
  /// Ids of calls are smaller. Messages without a reply have ids from here on.
  static constexpr std::uint64_t kNotifications = std::uint64_t{1} << 62;

  /// Adds a call. Returns its id, which is never 0.
  std::uint64_t add(PendingCall&& call);
  /// Removes and returns the call; nothing if it has ended.
  std::optional<PendingCall> take(std::uint64_t id);
  /// Finds the call, which stays; null if it has ended.
  PendingCall* find(std::uint64_t id) noexcept;

  /// Removes the calls whose deadline is at or before `now`. Afterwards `earliest_deadline()` is
  /// exact.
  std::vector<PendingCall> take_expired(TimePoint now);
  std::vector<PendingCall> take_all();

  /// No call has an earlier deadline. Calls that end do not update it, so that they cost nothing
  /// here.
  [[nodiscard]] TimePoint earliest_deadline() const noexcept { return earliest_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// The bytes of all calls that wait.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

  template <class F>
  void for_each(F&& visit) const {
    for (const Slot& slot : slots_) {
      if (slot.used) visit(slot.call);
    }
  }

 private:
  struct Slot {
    PendingCall call;
    std::uint32_t generation = 1;
    std::uint32_t next_free = 0;
    bool used = false;
  };
  static constexpr std::size_t kKeptSlots = 4096;
  static constexpr std::uint32_t kNone = 0xffffffff;
  static constexpr std::uint32_t kLastGeneration = (std::uint32_t{1} << 30) - 1;

  static constexpr std::size_t index_of(std::uint64_t id) noexcept { return id & 0xffffffffU; }
  Slot* slot_of(std::uint64_t id) noexcept;
  PendingCall release(std::size_t index);
  void free_slot(std::size_t index, std::uint64_t bytes);
  void shrink();

  std::vector<Slot> slots_;
  std::uint32_t first_free_ = kNone;
  std::uint32_t first_generation_ = 1;
  std::size_t size_ = 0;
  std::uint64_t bytes_ = 0;
  TimePoint earliest_ = TimePoint::max();
};

inline std::uint64_t CallTable::add(PendingCall&& call) {
  if (first_free_ == kNone) {
    first_free_ = static_cast<std::uint32_t>(slots_.size());
    Slot& added = slots_.emplace_back();
    added.next_free = kNone;
    added.generation = first_generation_;
  }
  const std::uint32_t index = first_free_;
  Slot& slot = slots_[index];
  first_free_ = slot.next_free;
  earliest_ = std::min(earliest_, call.deadline);
  bytes_ += call.bytes;
  slot.call = std::move(call);
  slot.call.id = (std::uint64_t{slot.generation} << 32) | index;
  slot.used = true;
  ++size_;
  return slot.call.id;
}

inline CallTable::Slot* CallTable::slot_of(std::uint64_t id) noexcept {
  const std::size_t index = index_of(id);
  if (index >= slots_.size()) return nullptr;
  Slot& slot = slots_[index];
  return slot.used && slot.generation == id >> 32 ? &slot : nullptr;
}

// Frees a slot whose call, of this many bytes, was moved out.
inline void CallTable::free_slot(std::size_t index, std::uint64_t bytes) {
  Slot& slot = slots_[index];
  slot.used = false;
  slot.generation = slot.generation == kLastGeneration ? 1 : slot.generation + 1;
  slot.next_free = first_free_;
  first_free_ = static_cast<std::uint32_t>(index);
  bytes_ -= bytes;
  if (--size_ == 0 && slots_.size() > kKeptSlots) shrink();
}

inline std::optional<PendingCall> CallTable::take(std::uint64_t id) {
  std::optional<PendingCall> call;
  if (Slot* const slot = slot_of(id); slot != nullptr) {
    call.emplace(std::move(slot->call));
    free_slot(index_of(id), call->bytes);
  }
  return call;
}

inline PendingCall* CallTable::find(std::uint64_t id) noexcept {
  Slot* slot = slot_of(id);
  return slot != nullptr ? &slot->call : nullptr;
}

}  // namespace batchrpc
