#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/call/byte_budget.hpp"
#include "batchrpc/call/receive_plan.hpp"
#include "batchrpc/transport/loop.hpp"
#include "session/flow_control.hpp"
#include "session/growing_bytes.hpp"
#include "session/payload_memory.hpp"
#include "wire/frame.hpp"

namespace batchrpc {

/// The calls and replies of one session whose large payloads are still coming in, chunk by chunk. A
/// payload gets its memory when 64 KiB of it are there, or all of it. What comes before is set
/// aside, so that a few bytes of a large payload take little. Used by the thread that reads.
class PayloadAssembler {
 public:
  /// `limit`: the most bytes of all payloads of one call. `memory`: for payloads without memory of
  /// their target's; null: the allocator is used.
  explicit PayloadAssembler(std::uint64_t limit, std::shared_ptr<PayloadMemory> memory = nullptr)
      : limit_(limit), memory_(std::move(memory)) {}

  /// A call or reply that is complete.
  struct Whole {
    std::vector<Word> words{};
    std::vector<Bytes> payloads{};
    std::optional<TimePoint> deadline{};  ///< the deadline, for a call
    std::shared_ptr<void> kept{};         ///< the `kept` of its ReceivePlan
    detail::ByteCharge charge{};          ///< what a call takes of its peer's budget
  };

  /// Returns the bytes of all payloads of a frame; the largest number, if they are more.
  [[nodiscard]] static std::uint64_t size_of(const wire::FrameView& frame) noexcept {
    return sum_of(frame.payload_sizes);
  }
  [[nodiscard]] bool is_too_large(const wire::FrameView& frame) const noexcept {
    return size_of(frame) > limit_;
  }
  /// Expects the payloads of a frame, which are within the limit. They go to memory of `target`
  /// (may be null), or else to memory allocated here. Throws BadMessage.
  void begin(const wire::FrameView& frame, std::optional<TimePoint> deadline,
             std::shared_ptr<detail::PayloadTarget> target, detail::ByteCharge charge = {});
  /// Drops the payloads of a call that is refused, until all have come. Throws BadMessage.
  /// @{
  void refuse(const wire::FrameView& frame) { refuse(frame.header.id, frame.payload_sizes); }
  void refuse(std::uint64_t call, std::span<const std::uint64_t> sizes);
  /// @}
  /// Drops the rest of a call or reply whose chunk cannot be kept. Returns its received part, or
  /// nothing if it is not coming in.
  [[nodiscard]] std::optional<Whole> refuse_rest(const wire::FrameHeader& chunk);
  /// Sets the receive plan of a call that has begun. While `gate` (may be null) is shut, arriving
  /// chunks are set aside. It is told what has come.
  void receive(std::uint64_t call, detail::ReceivePlan receive_plan,
               std::shared_ptr<FlowControl> gate);

  /// Returns the memory for the bytes of a chunk; empty when its call is no longer awaited. If the
  /// chunk is not finished, the next one is the same again. Throws BadMessage, or std::bad_alloc:
  /// then call refuse_rest(), and this again.
  [[nodiscard]] std::span<std::byte> room_for(const wire::FrameHeader& chunk);
  /// The bytes of a chunk have come. Returns the call or reply if it is complete. Throws
  /// std::bad_alloc: then call refuse_rest().
  [[nodiscard]] std::optional<Whole> finish(const wire::FrameHeader& chunk);

  /// Ends the wait for the rest of a call that was refused. False: none was waited for.
  bool end_refusal(std::uint64_t call) { return refused_.erase(call) > 0; }
  /// Forgets a call, and returns its received part; nothing, if it is not coming in.
  [[nodiscard]] std::optional<Whole> drop(std::uint64_t call);
  /// Forgets some of the calls and replies, of which there may be millions. Returns whether none is
  /// left.
  bool drop_some();
  /// The ids of the calls that are coming in.
  [[nodiscard]] std::vector<std::uint64_t> calls() const;

 private:
  // A call or a reply: its id, and whether it is a reply.
  using Key = std::pair<std::uint64_t, bool>;
  struct Payload {
    std::uint64_t size = 0;
    std::uint64_t received = 0;
    GrowingBytes early{};  // the received bytes, as long as it has no memory
  };
  struct Assembly {
    Whole whole;
    std::vector<Payload> payloads;
    std::uint64_t received = 0;  // bytes of all payloads
    std::uint64_t missing = 0;
    std::shared_ptr<detail::PayloadTarget> target;
    std::shared_ptr<FlowControl> gate;
    bool waits = false;  // until the gate is found open
  };

  [[nodiscard]] static std::uint64_t sum_of(std::span<const std::uint64_t> sizes) noexcept;
  [[nodiscard]] static Key key_of(const wire::FrameHeader& chunk) noexcept {
    return {chunk.id, (chunk.flags & wire::kOfReply) != 0};
  }
  std::byte* memory_of(Assembly& assembly, std::size_t index);
  void settle(Assembly& assembly, std::uint64_t enough);
  void drop_refused(const wire::FrameHeader& chunk);
  void check_refused() const;

  const std::uint64_t limit_;
  const std::shared_ptr<PayloadMemory> memory_;
  std::map<Key, Assembly> assemblies_;
  std::map<std::uint64_t, std::uint64_t> refused_;  // the bytes still to come, by the call's id
};

}  // namespace batchrpc
