#include "batchrpc/batch/row_memory.hpp"

namespace batchrpc::detail {

std::shared_ptr<PayloadTarget> RowMemories::target(std::vector<Part> parts) {
  auto shared = std::make_shared<std::vector<Part>>(std::move(parts));
  auto choose = std::make_unique<PayloadTarget>(
      [shared](std::size_t index, std::size_t size) -> std::span<std::byte> {
        for (Part& part : *shared) {
          if (part.payload.index != index || part.payload.bytes != size) continue;
          part.memory = part.take();
          return part.memory.room;
        }
        return {};
      });
  return {choose.release(), RowMemories(std::move(shared))};
}

const RowMemory* RowMemories::of(const Bytes& bytes) {
  const auto* const memories = std::get_deleter<RowMemories>(bytes.owner());
  if (memories == nullptr) return nullptr;
  for (const Part& part : *memories->parts_) {
    const auto& room = part.memory.room;
    if (room.data() == bytes.data() && room.size() == bytes.size()) return &part.memory;
  }
  return nullptr;
}

}  // namespace batchrpc::detail
