#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "batchrpc/node/remote_call.hpp"
#include "node/output_queue.hpp"

namespace batchrpc {

/// A call that waits for its reply.
struct PendingCall {
  detail::ReplyHandler handler;
  TimePoint deadline = TimePoint::max();
  OutputQueue::Position position = 0;  ///< of its frame in the connection's output
  std::uint32_t function = 0;
  std::unique_ptr<detail::PayloadTarget> payload_target;
};

/// The calls that wait on one session, by id: index and generation of a slot, so that neither a
/// lock-free structure nor a hash is needed. Not thread-safe: the session locks.
class CallTable {
 public:
  /// Ids of calls are below; messages without a reply use those from here on.
  static constexpr std::uint64_t kNotifications = std::uint64_t{1} << 62;

  /// Returns the call's id, never 0.
  std::uint64_t add(PendingCall&& call);
  /// The call, which leaves the table; nothing if it has ended.
  std::optional<PendingCall> take(std::uint64_t id);
  /// The call, which stays; null if it has ended.
  PendingCall* find(std::uint64_t id) noexcept;

  /// Takes the calls whose deadline is at or before `now`. Afterwards `earliest_deadline()` is
  /// exact.
  std::vector<PendingCall> take_expired(TimePoint now);
  std::vector<PendingCall> take_all();

  /// No call's deadline is earlier. Calls that end leave it as it is, so that they cost nothing
  /// here.
  [[nodiscard]] TimePoint earliest_deadline() const noexcept { return earliest_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

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
  static constexpr std::uint32_t kNone = 0xffffffff;

  Slot* slot_of(std::uint64_t id) noexcept;
  PendingCall release(std::size_t index);

  std::vector<Slot> slots_;
  std::uint32_t first_free_ = kNone;
  std::size_t size_ = 0;
  TimePoint earliest_ = TimePoint::max();
};

}  // namespace batchrpc
