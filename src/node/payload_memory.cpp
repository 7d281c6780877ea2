#include "node/payload_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <utility>

namespace batchrpc {
namespace {

// A huge page costs a third of the small ones in its place.
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::align_val_t kAlign{kHugePage};

}  // namespace

PayloadMemory::~PayloadMemory() { free(kept_); }

Bytes PayloadMemory::allocate(std::size_t size) {
  if (size < kSmallest) return Bytes::allocate(size);
  Block block = take_kept(size);
  if (block.memory == nullptr) {
    std::vector<Block> surplus;
    {
      const std::lock_guard lock(mutex_);
      in_use_ += size;
      most_in_use_ = std::max(most_in_use_, in_use_);
      surplus = take_surplus();
    }
    free(surplus);  // first: what is in use and kept together does not grow meanwhile
    try {
      block = make(size);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      in_use_ -= size;
      throw;
    }
  }
  std::shared_ptr<const void> owner(
      block.memory,
      [self = shared_from_this(), block](const void* /*memory*/) { self->take_back(block); });
  return {std::move(owner), {block.memory, size}};
}

// Of those that fit without much waste the last one, which the processor's caches may hold.
PayloadMemory::Block PayloadMemory::take_kept(std::size_t size) {
  const std::lock_guard lock(mutex_);
  const auto at = std::find_if(kept_.rbegin(), kept_.rend(), [size](const Block& block) {
    return block.capacity >= size && block.capacity - size <= size / 8;
  });
  if (at == kept_.rend()) return {};
  const Block block = *at;
  kept_.erase(std::next(at).base());
  kept_bytes_ -= block.capacity;
  in_use_ += block.capacity;
  most_in_use_ = std::max(most_in_use_, in_use_);
  return block;
}

void PayloadMemory::take_back(Block block) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    in_use_ -= block.capacity;
    if (!closed_) {
      kept_.push_back(block);
      kept_bytes_ += block.capacity;
      return;
    }
  } catch (const std::bad_alloc&) {  // then it is not kept
  }
  free({block});
}

// What is kept beyond what was in use lately, the oldest first. By who holds the lock.
std::vector<PayloadMemory::Block> PayloadMemory::take_surplus() {
  const std::size_t most = closed_ ? 0 : std::max(most_in_use_, most_in_use_before_);
  std::vector<Block> surplus;
  auto at = kept_.begin();
  for (; at != kept_.end() && in_use_ + kept_bytes_ > most; ++at) {
    kept_bytes_ -= at->capacity;
    surplus.push_back(*at);
  }
  kept_.erase(kept_.begin(), at);
  return surplus;
}

void PayloadMemory::tick() {
  std::vector<Block> surplus;
  {
    const std::lock_guard lock(mutex_);
    most_in_use_before_ = std::exchange(most_in_use_, in_use_);
    surplus = take_surplus();
  }
  free(surplus);
}

void PayloadMemory::close() {
  std::vector<Block> surplus;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    kept_bytes_ = 0;
    surplus.swap(kept_);
  }
  free(surplus);
}

std::size_t PayloadMemory::kept_bytes() const {
  const std::lock_guard lock(mutex_);
  return kept_bytes_;
}

PayloadMemory::Block PayloadMemory::make(std::size_t size) {
  auto* const memory = static_cast<std::byte*>(::operator new(size, kAlign));
  const std::size_t whole_pages = size / kHugePage * kHugePage;
  if (whole_pages > 0) ::madvise(memory, whole_pages, MADV_HUGEPAGE);  // if it can be had
  return {.memory = memory, .capacity = size};
}

void PayloadMemory::free(const std::vector<Block>& blocks) noexcept {
  for (const Block& block : blocks)
    ::operator delete(block.memory, kAlign);
}

}  // namespace batchrpc
