#include "session/payload_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#endif
#endif
#if !defined(ASAN_POISON_MEMORY_REGION)
#define ASAN_POISON_MEMORY_REGION(address, size) static_cast<void>(0)
#define ASAN_UNPOISON_MEMORY_REGION(address, size) static_cast<void>(0)
#endif

namespace batchrpc {
namespace {

// A huge page costs a third of the small pages in its place.
constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t whole_pages(std::size_t size) {
  static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (size + page - 1) / page * page;
}

}  // namespace

PayloadMemory::~PayloadMemory() {
  for (const Block& block : kept_)
    free(block);
}

Bytes PayloadMemory::allocate(std::size_t size) {
  if (size < kSmallest) return Bytes::allocate(size);
  Block block = take_kept(size);
  if (block.memory == nullptr) {
    try {
      block = make(size);
    } catch (const std::bad_alloc&) {
      const std::lock_guard lock(mutex_);
      in_use_ -= whole_pages(size);
      throw;
    }
  }
  // If this runs out of memory, it gives the block to its deleter.
  std::shared_ptr<const void> owner(
      block.memory,
      [self = shared_from_this(), block](const void* /*memory*/) { self->take_back(block); });
  return {std::move(owner), {block.memory, size}};
}

// Takes the kept block that fits without much waste and was freed last, since the processor's
// caches may hold it. If there is none, frees kept blocks to make room for a new one.
PayloadMemory::Block PayloadMemory::take_kept(std::size_t size) {
  const std::lock_guard lock(mutex_);
  const auto at = std::find_if(kept_.rbegin(), kept_.rend(), [size](const Block& block) {
    return block.capacity >= size && block.capacity - size <= size / 8;
  });
  const std::size_t capacity = at == kept_.rend() ? whole_pages(size) : at->capacity;
  Block block;
  if (at != kept_.rend()) {
    block = *at;
    kept_.erase(std::next(at).base());
    kept_bytes_ -= capacity;
    ASAN_UNPOISON_MEMORY_REGION(block.memory, block.capacity);
  }
  in_use_ += capacity;
  most_in_use_ = std::max(most_in_use_, in_use_);
  free_surplus();
  return block;
}

void PayloadMemory::take_back(Block block) noexcept {
  const std::lock_guard lock(mutex_);
  in_use_ -= block.capacity;
  try {
    if (!closed_) {
      kept_.push_back(block);
      kept_bytes_ += block.capacity;
      ASAN_POISON_MEMORY_REGION(block.memory, block.capacity);
      return;
    }
  } catch (const std::bad_alloc&) {  // the block is not kept then
  }
  free(block);
}

// Frees kept blocks, the oldest first, until no more is held than was in use lately. The caller
// must hold the lock.
void PayloadMemory::free_surplus() noexcept {
  const std::size_t most = closed_ ? 0 : std::max(most_in_use_, most_in_use_before_);
  auto at = kept_.begin();
  for (; at != kept_.end() && in_use_ + kept_bytes_ > most; ++at) {
    kept_bytes_ -= at->capacity;
    free(*at);
  }
  kept_.erase(kept_.begin(), at);
}

void PayloadMemory::tick() {
  const std::lock_guard lock(mutex_);
  most_in_use_before_ = std::exchange(most_in_use_, in_use_);
  free_surplus();
}

void PayloadMemory::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  free_surplus();
}

std::size_t PayloadMemory::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return in_use_;
}

std::size_t PayloadMemory::kept_bytes() const {
  const std::lock_guard lock(mutex_);
  return kept_bytes_;
}

// Maps the memory directly. The heap would keep it when it is freed.
PayloadMemory::Block PayloadMemory::make(std::size_t size) {
  const std::size_t capacity = whole_pages(size);
  const std::size_t mapped = capacity + kHugePage;  // an aligned piece is cut out of it
  void* const map =
      ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) throw std::bad_alloc();
  auto* const begin = static_cast<std::byte*>(map);
  const std::size_t before =
      (kHugePage - reinterpret_cast<std::uintptr_t>(map) % kHugePage) % kHugePage;
  if (before > 0) ::munmap(begin, before);
  if (before < kHugePage) ::munmap(begin + before + capacity, kHugePage - before);
  ::madvise(begin + before, capacity, MADV_HUGEPAGE);  // if huge pages are available
  return {.memory = begin + before, .capacity = capacity};
}

void PayloadMemory::free(Block block) noexcept {
  ASAN_UNPOISON_MEMORY_REGION(block.memory, block.capacity);
  ::munmap(block.memory, block.capacity);
}

}  // namespace batchrpc
