#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/call/receive_plan.hpp"
#include "batchrpc/transport/loop.hpp"
#include "session/flow_control.hpp"
#include "session/payload_memory.hpp"
#include "wire/frame.hpp"

namespace batchrpc {

/// The calls and replies of one session whose large payloads are still coming in, chunk by chunk. A
/// payload has memory from its first chunk on. Used by the thread that reads.
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
  };

  /// Expects the payloads of a frame. They go to memory of `target` (may be null), or else to
  /// memory allocated here. Throws BadMessage.
  void begin(const wire::FrameView& frame, std::optional<TimePoint> deadline,
             std::shared_ptr<detail::PayloadTarget> target);
  /// Sets the receive plan of a call that has begun. While `gate` (may be null) is shut, arriving
  /// chunks are set aside.
  void receive(std::uint64_t call, detail::ReceivePlan receive_plan,
               std::shared_ptr<const FlowControl> gate);

  /// Returns the memory for the bytes of a chunk; empty when its call is no longer awaited. If the
  /// chunk is not finished, the next one is the same again. Throws BadMessage.
  [[nodiscard]] std::span<std::byte> room_for(const wire::FrameHeader& chunk);
  /// The bytes of a chunk have come. Returns the call or reply if it is complete.
  [[nodiscard]] std::optional<Whole> finish(const wire::FrameHeader& chunk);

  /// Forgets a call, and returns its received part; nothing, if it is not coming in.
  [[nodiscard]] std::optional<Whole> drop(std::uint64_t call);
  void clear();
  /// The ids of the calls that are coming in.
  [[nodiscard]] std::vector<std::uint64_t> calls() const;

 private:
  struct Payload {
    std::uint64_t size = 0;
    std::uint64_t received = 0;
  };
  struct Early {
    std::uint32_t payload = 0;
    std::uint64_t offset = 0;
    Bytes bytes;
  };
  struct Assembly {
    Whole whole;
    std::vector<Payload> payloads;
    std::uint64_t missing = 0;
    std::shared_ptr<detail::PayloadTarget> target;
    std::shared_ptr<const FlowControl> gate;  // null once it was found open
    std::vector<Early> early;                 // came while it was shut
    bool last_is_early = false;               // the chunk that is being received is one of these
    std::uint64_t early_bytes = 0;
  };

  std::byte* memory_of(Assembly& assembly, std::size_t index);
  void settle(Assembly& assembly);

  const std::uint64_t limit_;
  const std::shared_ptr<PayloadMemory> memory_;
  std::unordered_map<std::uint64_t, Assembly> assemblies_;  // by id * 2, + 1 for replies
};

}  // namespace batchrpc
