#include "session/payload_assembler.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "batchrpc/base/error.hpp"

namespace batchrpc {
namespace {

constexpr std::size_t kMaxAssemblies = 4096;

std::uint64_t key_of(std::uint64_t id, bool of_reply) { return id * 2 + (of_reply ? 1 : 0); }

std::uint64_t key_of(const wire::FrameHeader& chunk) {
  return key_of(chunk.id, (chunk.flags & wire::kOfReply) != 0);
}

}  // namespace

void PayloadAssembler::begin(const wire::FrameView& frame, std::optional<TimePoint> deadline,
                             std::shared_ptr<detail::PayloadTarget> target) {
  std::uint64_t total = 0;
  for (const std::uint64_t size : frame.payload_sizes) {
    if (size > limit_ - total) {
      throw BadMessage("a call's payloads are larger than the limit of " + std::to_string(limit_) +
                       " bytes (NodeOptions::limits.max_payload_bytes)");
    }
    total += size;
  }
  if (assemblies_.size() >= kMaxAssemblies) {
    throw BadMessage("too many calls with payloads at once");
  }
  const bool of_reply = frame.header.kind == wire::FrameKind::result;
  const auto [at, added] = assemblies_.try_emplace(key_of(frame.header.id, of_reply));
  if (!added) throw BadMessage("two calls have the same id");
  Assembly& assembly = at->second;
  assembly.whole.words.assign(frame.words.begin(), frame.words.end());
  assembly.whole.payloads.resize(frame.payload_sizes.size());
  assembly.whole.deadline = deadline;
  assembly.target = std::move(target);
  assembly.missing = total;
  assembly.payloads.reserve(frame.payload_sizes.size());
  for (const std::uint64_t size : frame.payload_sizes)
    assembly.payloads.push_back({.size = size});
}

void PayloadAssembler::receive(std::uint64_t call, detail::ReceivePlan receive_plan,
                               std::shared_ptr<const FlowControl> gate) {
  const auto at = assemblies_.find(key_of(call, false));
  if (at == assemblies_.end()) return;  // its function waited, and the call was dropped meanwhile
  at->second.whole.kept = std::move(receive_plan.kept);
  at->second.target = std::move(receive_plan.target);
  at->second.gate = std::move(gate);
}

// Returns the memory of a payload. Chooses it now if the payload has none yet.
std::byte* PayloadAssembler::memory_of(Assembly& assembly, std::size_t index) {
  const std::size_t size = assembly.payloads[index].size;
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
  }
  return payload.mutable_data();
}

// Copies the early chunks to their place.
void PayloadAssembler::settle(Assembly& assembly) {
  for (const Early& part : assembly.early) {
    std::byte* const memory = memory_of(assembly, part.payload);
    std::copy_n(part.bytes.data(), part.bytes.size(), memory + part.offset);
  }
  assembly.early.clear();
}

std::span<std::byte> PayloadAssembler::room_for(const wire::FrameHeader& chunk) {
  const auto at = assemblies_.find(key_of(chunk));
  if (at == assemblies_.end()) {
    if ((chunk.flags & wire::kOfReply) != 0) return {};
    throw BadMessage("a chunk does not belong to any call");
  }
  Assembly& assembly = at->second;
  if (chunk.number >= assembly.payloads.size() || chunk.value == 0) {
    throw BadMessage("a chunk does not belong to any payload");
  }
  Payload& payload = assembly.payloads[chunk.number];
  if (chunk.value > payload.size - payload.received) {
    throw BadMessage("a chunk extends beyond its payload");
  }
  const std::uint64_t offset = payload.received;
  if (std::exchange(assembly.last_is_early, false)) {  // its connection broke
    assembly.early_bytes -= assembly.early.back().bytes.size();
    assembly.early.pop_back();
  }
  if (assembly.gate) {
    if (assembly.gate->is_shut()) {
      if (chunk.value > wire::kEagerBytes - assembly.early_bytes) {
        throw BadMessage("more than " + std::to_string(wire::kEagerBytes) +
                         " bytes of a call's payloads arrived before they were requested");
      }
      assembly.early.push_back(
          {.payload = chunk.number, .offset = offset, .bytes = Bytes::allocate(chunk.value)});
      assembly.early_bytes += chunk.value;
      assembly.last_is_early = true;
      return {assembly.early.back().bytes.mutable_data(), chunk.value};
    }
    assembly.gate = nullptr;  // it is open
    settle(assembly);
  }
  return {memory_of(assembly, chunk.number) + offset, chunk.value};
}

std::optional<PayloadAssembler::Whole> PayloadAssembler::finish(const wire::FrameHeader& chunk) {
  const auto at = assemblies_.find(key_of(chunk));
  if (at == assemblies_.end()) return std::nullopt;
  at->second.last_is_early = false;
  at->second.payloads[chunk.number].received += chunk.value;
  at->second.missing -= chunk.value;
  if (at->second.missing > 0) return std::nullopt;
  settle(at->second);
  Whole whole = std::move(at->second.whole);
  assemblies_.erase(at);
  return whole;
}

std::optional<PayloadAssembler::Whole> PayloadAssembler::drop(std::uint64_t call) {
  const auto dropped = assemblies_.extract(key_of(call, false));
  if (dropped.empty()) return std::nullopt;
  return std::move(dropped.mapped().whole);
}

std::vector<std::uint64_t> PayloadAssembler::calls() const {
  std::vector<std::uint64_t> ids;
  for (const auto& [key, assembly] : assemblies_) {
    if (key % 2 == 0) ids.push_back(key / 2);
  }
  return ids;
}

void PayloadAssembler::clear() {
  const auto dropped = std::exchange(assemblies_, {});  // destroying it may run any code
}

}  // namespace batchrpc
