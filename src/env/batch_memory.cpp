#include "env/batch_memory.hpp"

#include <cstring>
#include <utility>

namespace batchrpc::env {
namespace {

Bytes part_of(const Bytes& memory, std::size_t index, std::size_t bytes) {
  return {memory.owner(), memory.span().subspan(index * bytes, bytes)};
}

}  // namespace

BatchMemory::Block BatchMemory::make(std::size_t count, std::size_t bytes) const {
  return {.memory = memory_->allocate(count * bytes),
          .place_bytes = bytes,
          .given = std::vector<bool>(count)};
}

Bytes BatchMemory::place_in(std::size_t buffer, std::size_t index, std::size_t count,
                            std::size_t bytes) {
  if (of_buffers_.size() <= buffer) of_buffers_.resize(buffer + 1);
  Block& block = of_buffers_[buffer];
  if (block.memory.empty()) block = make(count, bytes);
  if (block.place_bytes != bytes || block.given.size() != count || block.given[index]) return {};
  block.given[index] = true;
  return part_of(block.memory, index, bytes);
}

void BatchMemory::taken(std::size_t buffer) noexcept {
  if (buffer < of_buffers_.size()) of_buffers_[buffer] = {};
}

Bytes BatchMemory::next_place(std::size_t count, std::size_t bytes) {
  if (arrivals_ == of_arrivals_.given.size() || of_arrivals_.place_bytes != bytes) {
    of_arrivals_ = make(count, bytes);
    arrivals_ = 0;
  }
  return part_of(of_arrivals_.memory, arrivals_++, bytes);
}

Bytes join(const std::vector<Bytes>& places, std::size_t bytes, PayloadMemory& memory) {
  const std::size_t all = places.size() * bytes;
  // Where the first place would be, if known. Owners distinguish blocks.
  const Bytes* known = nullptr;
  bool adjacent = true;
  std::size_t first = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i].empty()) {
      adjacent = false;  // its place may be another's
      continue;
    }
    if (known == nullptr) {
      known = &places[i];
      first = i;
    }
    adjacent = adjacent && places[i].owner() == known->owner() &&
               places[i].data() == known->data() + (i - first) * bytes;
  }
  if (adjacent && known != nullptr) return {known->owner(), {known->data(), all}};

  Bytes joined = memory.allocate(all);
  for (std::size_t i = 0; i < places.size(); ++i) {
    std::byte* const at = joined.mutable_data() + i * bytes;
    if (places[i].empty()) {
      std::memset(at, 0, bytes);
    } else {
      std::memcpy(at, places[i].data(), bytes);
    }
  }
  return joined;
}

}  // namespace batchrpc::env
