#include "batchrpc/batch/row_memory.hpp"

namespace batchrpc::detail {

std::shared_ptr<PayloadTarget> RowMemories::target(std::vector<RowMemory> memories) {
  std::vector<std::pair<std::uint32_t, std::span<std::byte>>> rooms;
  for (const RowMemory& memory : memories)
    rooms.emplace_back(memory.payload, memory.room);
  auto choose = std::make_unique<PayloadTarget>(
      [rooms = std::move(rooms)](std::size_t index, std::size_t size) -> std::span<std::byte> {
        for (const auto& [payload, room] : rooms) {
          if (payload == index && room.size() == size) return room;
        }
        return {};
      });
  return {choose.release(), RowMemories(std::move(memories))};
}

const RowMemory* RowMemories::of(const Bytes& bytes) {
  const auto* const memories = std::get_deleter<RowMemories>(bytes.owner());
  if (memories == nullptr) return nullptr;
  for (const RowMemory& memory : memories->memories_) {
    if (memory.room.data() == bytes.data() && memory.room.size() == bytes.size()) return &memory;
  }
  return nullptr;
}

}  // namespace batchrpc::detail
