#include "node/payload_assembler.hpp"

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

void PayloadAssembler::begin(const wire::FrameView& frame,
                             const std::shared_ptr<detail::PayloadTarget>& target) {
  std::uint64_t total = 0;
  for (const std::uint64_t size : frame.payload_sizes) {
    if (size > limit_ - total) {
      throw BadMessage("a call's payloads are larger than the limit of " + std::to_string(limit_) +
                       " bytes (NodeOptions::max_payload_bytes)");
    }
    total += size;
  }
  if (assemblies_.size() >= kMaxAssemblies) {
    throw BadMessage("too many calls with payloads at once");
  }
  const bool of_reply = frame.header.kind == wire::FrameKind::result;
  const auto [at, added] = assemblies_.try_emplace(key_of(frame.header.id, of_reply));
  if (!added) throw BadMessage("two calls of one id");
  Assembly& assembly = at->second;
  assembly.whole.words.assign(frame.words.begin(), frame.words.end());
  assembly.missing = total;
  assembly.received.resize(frame.payload_sizes.size());
  for (std::size_t i = 0; i < frame.payload_sizes.size(); ++i) {
    const std::size_t size = frame.payload_sizes[i];
    std::span<std::byte> room;
    if (target && size > 0) room = (*target)(i, size);
    // The target is what keeps its memory.
    const bool there = room.size() == size && size > 0;
    assembly.whole.payloads.push_back(there ? Bytes(target, room) : Bytes::allocate(size));
  }
}

std::span<std::byte> PayloadAssembler::room_for(const wire::FrameHeader& chunk) {
  const auto at = assemblies_.find(key_of(chunk));
  if (at == assemblies_.end()) {
    if ((chunk.flags & wire::kOfReply) != 0) return {};
    throw BadMessage("a chunk of no call");
  }
  Assembly& assembly = at->second;
  if (chunk.number >= assembly.received.size() || chunk.value == 0) {
    throw BadMessage("a chunk of no payload");
  }
  const Bytes& payload = assembly.whole.payloads[chunk.number];
  std::uint64_t& received = assembly.received[chunk.number];
  if (chunk.value > payload.size() - received) throw BadMessage("a chunk beyond its payload");
  const std::span room(payload.mutable_data() + received, chunk.value);
  received += chunk.value;
  return room;
}

std::optional<PayloadAssembler::Whole> PayloadAssembler::finish(const wire::FrameHeader& chunk) {
  const auto at = assemblies_.find(key_of(chunk));
  if (at == assemblies_.end()) return std::nullopt;
  at->second.missing -= chunk.value;
  if (at->second.missing > 0) return std::nullopt;
  Whole whole = std::move(at->second.whole);
  assemblies_.erase(at);
  return whole;
}

}  // namespace batchrpc
