#include "session/payload_assembler.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "batchrpc/base/error.hpp"

namespace batchrpc {
namespace {

// A payload gets its memory when this much of it has come. Peers of this library send chunks of at
// least 16 KiB, so little is copied. A payload of this size gets its memory with its first byte.
constexpr std::uint64_t kEnough = GrowingBytes::kLeast;

// The most refused calls whose payloads may still be coming. A sender drops the rest of a call when
// it reads the refusal, and each call that is sent in chunks has more than 16 KiB: so a peer would
// have to have 4 GiB under way.
constexpr std::size_t kMostRefused = std::size_t{1} << 18;

}  // namespace

std::uint64_t PayloadAssembler::sum_of(std::span<const std::uint64_t> sizes) noexcept {
  std::uint64_t total = 0;
  for (const std::uint64_t size : sizes)
    total += std::min(size, ~total);
  return total;
}

void PayloadAssembler::begin(const wire::FrameView& frame, std::optional<TimePoint> deadline,
                             std::shared_ptr<detail::PayloadTarget> target,
                             detail::ByteCharge charge) {
  const bool of_reply = frame.header.kind == wire::FrameKind::result;
  const Key key{frame.header.id, of_reply};
  if (assemblies_.contains(key) || (!of_reply && refused_.contains(frame.header.id))) {
    throw BadMessage("two calls have the same id");
  }
  Assembly assembly;
  assembly.whole.words.assign(frame.words.begin(), frame.words.end());
  assembly.whole.payloads.resize(frame.payload_sizes.size());
  assembly.whole.deadline = deadline;
  assembly.whole.charge = std::move(charge);
  assembly.target = std::move(target);
  assembly.missing = size_of(frame);
  assembly.payloads.reserve(frame.payload_sizes.size());
  for (const std::uint64_t size : frame.payload_sizes)
    assembly.payloads.push_back({.size = size});
  assemblies_.emplace(key, std::move(assembly));
}

void PayloadAssembler::refuse(std::uint64_t call, std::span<const std::uint64_t> sizes) {
  const std::uint64_t total = sum_of(sizes);
  if (assemblies_.contains(Key{call, false}) || refused_.contains(call)) {
    throw BadMessage("two calls have the same id");
  }
  if (total > 0) refused_.emplace(call, total);
  check_refused();
}

std::optional<PayloadAssembler::Whole> PayloadAssembler::refuse_rest(
    const wire::FrameHeader& chunk) {
  const auto at = assemblies_.find(key_of(chunk));
  if (at == assemblies_.end()) return std::nullopt;
  Assembly& assembly = at->second;
  if (assembly.missing > 0 && (chunk.flags & wire::kOfReply) == 0) {
    refused_.emplace(chunk.id, assembly.missing);
    check_refused();
  }
  Whole whole = std::move(assembly.whole);
  assemblies_.erase(at);
  return whole;
}

void PayloadAssembler::check_refused() const {
  if (refused_.size() <= kMostRefused) return;
  throw BadMessage("the payloads of " + std::to_string(refused_.size()) +
                   " calls that were refused are still coming in; its sender must send a cancel "
                   "in place of the rest");
}

void PayloadAssembler::receive(std::uint64_t call, detail::ReceivePlan receive_plan,
                               std::shared_ptr<FlowControl> gate) {
  const auto at = assemblies_.find(Key{call, false});
  if (at == assemblies_.end()) return;  // its function waited, and the call was dropped meanwhile
  at->second.whole.kept = std::move(receive_plan.kept);
  at->second.target = std::move(receive_plan.target);
  at->second.waits = gate != nullptr && gate->is_shut();
  at->second.gate = std::move(gate);
}

// Returns the memory of a payload. Chooses it now if the payload has none yet, and moves there what
// was set aside.
std::byte* PayloadAssembler::memory_of(Assembly& assembly, std::size_t index) {
  Payload& part = assembly.payloads[index];
  const std::size_t size = part.size;
  Bytes& payload = assembly.whole.payloads[index];
  if (payload.empty()) {
    std::span<std::byte> room;
    try {
      if (assembly.target) room = (*assembly.target)(index, size);
    } catch (...) {
      room = {};
    }
    if (room.size() == size) {
      payload = Bytes(assembly.target, room);  // the target keeps its memory alive
    } else {
      payload = memory_ ? memory_->allocate(size) : Bytes::allocate(size);
    }
    std::copy_n(part.early.data(), part.received, payload.mutable_data());
    part.early = {};
  }
  return payload.mutable_data();
}

// Gives their memory to the payloads of which something was set aside and enough has come.
void PayloadAssembler::settle(Assembly& assembly, std::uint64_t enough) {
  for (std::size_t index = 0; index < assembly.payloads.size(); ++index) {
    const Payload& payload = assembly.payloads[index];
    if (payload.early.capacity() == 0 || payload.received < std::min(payload.size, enough))
      continue;
    memory_of(assembly, index);
  }
}

// The bytes of a chunk of a refused call are dropped. Throws BadMessage if there is no such call.
void PayloadAssembler::drop_refused(const wire::FrameHeader& chunk) {
  const auto at = refused_.find(chunk.id);
  if (at == refused_.end() || chunk.value == 0 || chunk.value > at->second) {
    throw BadMessage("a chunk does not belong to any call");
  }
  at->second -= chunk.value;
  if (at->second == 0) refused_.erase(at);
}

std::span<std::byte> PayloadAssembler::room_for(const wire::FrameHeader& chunk) {
  const auto at = assemblies_.find(key_of(chunk));
  if (at == assemblies_.end()) {
    if ((chunk.flags & wire::kOfReply) == 0) drop_refused(chunk);
    return {};
  }
  Assembly& assembly = at->second;
  if (chunk.number >= assembly.payloads.size() || chunk.value == 0) {
    throw BadMessage("a chunk does not belong to any payload");
  }
  Payload& payload = assembly.payloads[chunk.number];
  if (chunk.value > payload.size - payload.received) {
    throw BadMessage("a chunk extends beyond its payload");
  }
  const std::uint64_t end = payload.received + chunk.value;
  bool is_early = payload.size > kEnough && end < kEnough;
  if (assembly.waits) {
    if (assembly.gate->is_shut()) {
      is_early = true;
      if (chunk.value > wire::kEagerBytes - std::min(wire::kEagerBytes, assembly.received)) {
        throw BadMessage("more than " + std::to_string(wire::kEagerBytes) +
                         " bytes of a call's payloads arrived before they were requested");
      }
    } else {
      assembly.waits = false;
      settle(assembly, kEnough);
    }
  }
  const bool has_memory = !assembly.whole.payloads[chunk.number].empty();
  if (is_early && !has_memory) {
    payload.early.grow(payload.received, end, payload.size);
    return {payload.early.data() + payload.received, chunk.value};
  }
  return {memory_of(assembly, chunk.number) + payload.received, chunk.value};
}

std::optional<PayloadAssembler::Whole> PayloadAssembler::finish(const wire::FrameHeader& chunk) {
  const auto at = assemblies_.find(key_of(chunk));
  if (at == assemblies_.end()) return std::nullopt;
  at->second.payloads[chunk.number].received += chunk.value;
  at->second.received += chunk.value;
  at->second.missing -= chunk.value;
  if (at->second.gate) at->second.gate->set_received(at->second.received);
  if (at->second.missing > 0) return std::nullopt;
  settle(at->second, 0);
  Whole whole = std::move(at->second.whole);
  assemblies_.erase(at);
  return whole;
}

std::optional<PayloadAssembler::Whole> PayloadAssembler::drop(std::uint64_t call) {
  const auto dropped = assemblies_.extract(Key{call, false});
  if (dropped.empty()) return std::nullopt;
  return std::move(dropped.mapped().whole);
}

std::vector<std::uint64_t> PayloadAssembler::calls() const {
  std::vector<std::uint64_t> ids;
  for (const auto& [key, assembly] : assemblies_) {
    if (!key.second) ids.push_back(key.first);
  }
  return ids;
}

bool PayloadAssembler::drop_some() {
  constexpr int kAtOnce = 256;
  for (int i = 0; i < kAtOnce && !assemblies_.empty(); ++i)
    (void)assemblies_.extract(assemblies_.begin());  // its end may run any code
  for (int i = 0; i < kAtOnce && !refused_.empty(); ++i)
    refused_.erase(refused_.begin());
  return assemblies_.empty() && refused_.empty();
}

}  // namespace batchrpc
