#include "batchrpc/base/block_pool.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <utility>

namespace batchrpc::detail {
namespace {

constexpr std::size_t kStep = 16;
constexpr std::size_t kLargest = 640;  // larger blocks are not pooled
constexpr std::size_t kShelves = kLargest / kStep;
constexpr std::size_t kInDepots = std::size_t{4} << 20;  // bytes

#ifdef __has_feature  // clang
#define BATCHRPC_ASAN __has_feature(address_sanitizer)
#define BATCHRPC_TSAN __has_feature(thread_sanitizer)
#else
#ifdef __SANITIZE_ADDRESS__
#define BATCHRPC_ASAN 1
#else
#define BATCHRPC_ASAN 0
#endif
#ifdef __SANITIZE_THREAD__
#define BATCHRPC_TSAN 1
#else
#define BATCHRPC_TSAN 0
#endif
#endif

// Under ASan nothing is pooled, so that it sees uses of freed blocks.
constexpr bool kPooling = !BATCHRPC_ASAN;

constexpr bool is_pooled(std::size_t size) noexcept {
  return kPooling && size > 0 && size <= kLargest;
}
constexpr std::size_t shelf_of(std::size_t size) noexcept { return (size - 1) / kStep; }
constexpr std::size_t size_on(std::size_t shelf) noexcept { return (shelf + 1) * kStep; }
// How many blocks a thread gives or takes at a time: at most 32 blocks and 4 KiB. A table, because
// a call takes and frees several blocks and would divide each time.
constexpr auto kBatches = [] {
  std::array<std::uint32_t, kShelves> batches{};
  for (std::size_t shelf = 0; shelf < kShelves; ++shelf)
    batches[shelf] = static_cast<std::uint32_t>(std::min<std::size_t>(32, 4096 / size_on(shelf)));
  return batches;
}();
constexpr std::uint32_t batch_on(std::size_t shelf) noexcept { return kBatches[shelf]; }
constexpr std::size_t batch_bytes(std::size_t shelf) noexcept {
  return batch_on(shelf) * size_on(shelf);
}

// A free block. `next` links the blocks of a batch; `next_batch` of its first block links batches.
struct Block {
  Block* next;
  Block* next_batch;
};
static_assert(sizeof(Block) <= kStep);

void free_batch(Block* block) noexcept {
  while (block != nullptr)
    ::operator delete(std::exchange(block, block->next));
}

// The free blocks of one size that threads pass to each other. A thread that finds the depot locked
// goes without it. So it does not matter which thread held the lock when the process was forked.
class Depot {
 public:
  bool give(Block* batch, std::size_t bytes) noexcept {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return false;
    if (in_all_.fetch_add(bytes, std::memory_order_relaxed) + bytes > kInDepots) {
      in_all_.fetch_sub(bytes, std::memory_order_relaxed);
      return false;
    }
    batch->next_batch = std::exchange(first_, batch);
    ++batches_;
    return true;
  }

  Block* take(std::size_t bytes) noexcept {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    return lock ? take_locked(bytes) : nullptr;
  }

  void trim(std::size_t bytes) noexcept {
    Block* unused = nullptr;
    {
      const std::unique_lock lock(mutex_, std::try_to_lock);
      if (!lock) return;
      for (std::size_t left = (fewest_ + 1) / 2; left > 0; --left) {
        Block* const batch = take_locked(bytes);
        batch->next_batch = std::exchange(unused, batch);
      }
      fewest_ = batches_;
    }
    while (unused != nullptr)
      free_batch(std::exchange(unused, unused->next_batch));
  }

 private:
  Block* take_locked(std::size_t bytes) noexcept {
    if (first_ == nullptr) return nullptr;
    in_all_.fetch_sub(bytes, std::memory_order_relaxed);
    fewest_ = std::min(fewest_, --batches_);
    return std::exchange(first_, first_->next_batch);
  }

  static inline constinit std::atomic<std::size_t> in_all_{0};

  std::mutex mutex_;
  Block* first_ = nullptr;
  std::size_t batches_ = 0;
  std::size_t fewest_ = 0;  // since the last trim()
};

constinit std::array<Depot, kShelves> depots{};

// The free blocks of one thread.
class Cache {
 public:
  Cache() = default;
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;
  ~Cache() { clear(); }

  void* take(std::size_t at) {
    Shelf& shelf = shelves_[at];
    if (shelf.count == 0) {
      shelf.first = depots[at].take(batch_bytes(at));
      if (shelf.first == nullptr) return ::operator new(size_on(at));
      shelf.count = batch_on(at);
    }
    --shelf.count;
    return std::exchange(shelf.first, shelf.first->next);
  }

  void put(void* memory, std::size_t at) noexcept {
    if (BATCHRPC_TSAN)
      std::memset(memory, 0, size_on(at));  // TSan then reports a thread that still uses the block
    Shelf& shelf = shelves_[at];
    shelf.first = ::new (memory) Block{shelf.first, nullptr};
    if (++shelf.count == 2 * batch_on(at)) pass_on(at);
  }

  void clear() noexcept {
    for (std::size_t at = 0; at < kShelves; ++at) {
      while (shelves_[at].count > 0)
        pass_on(at);
    }
  }

 private:
  struct Shelf {
    Block* first = nullptr;
    std::uint32_t count = 0;
  };

  // Passes a batch to the depot, or frees the blocks if there is less than a batch.
  void pass_on(std::size_t at) noexcept {
    Shelf& shelf = shelves_[at];
    const std::uint32_t count = std::min(batch_on(at), shelf.count);
    Block* const batch = shelf.first;
    Block* last = batch;
    for (std::uint32_t i = 1; i < count; ++i)
      last = last->next;
    shelf.first = std::exchange(last->next, nullptr);
    shelf.count -= count;
    const bool whole = count == batch_on(at);
    if (!whole || !depots[at].give(batch, batch_bytes(at))) free_batch(batch);
  }

  std::array<Shelf, kShelves> shelves_{};
};

// Returns null if there is no memory for a cache, or if the thread's thread_local objects are being
// destroyed: those destroyed later do without it.
Cache* this_threads_cache() noexcept {
  static constinit thread_local Cache* own = nullptr;
  static constinit thread_local bool ended = false;
  struct AtThreadEnd {
    ~AtThreadEnd() {
      ended = true;
      delete std::exchange(own, nullptr);
    }
  };
  if (own == nullptr && !ended) {
    thread_local AtThreadEnd at_thread_end;
    (void)&at_thread_end;
    own = new (std::nothrow) Cache;
  }
  return own;
}

}  // namespace

void* allocate_block(std::size_t size) {
  if (!is_pooled(size)) return ::operator new(size);
  Cache* const cache = this_threads_cache();
  return cache != nullptr ? cache->take(shelf_of(size)) : ::operator new(size_on(shelf_of(size)));
}

void free_block(void* block, std::size_t size) noexcept {
  if (block == nullptr) return;
  Cache* const cache = is_pooled(size) ? this_threads_cache() : nullptr;
  if (cache != nullptr) {
    cache->put(block, shelf_of(size));
  } else {
    ::operator delete(block);
  }
}

void trim_blocks() noexcept {
  if (!kPooling) return;
  if (Cache* const cache = this_threads_cache()) cache->clear();
  for (std::size_t at = 0; at < kShelves; ++at)
    depots[at].trim(batch_bytes(at));
}

void trim_blocks_now_and_then() noexcept {
  using Clock = std::chrono::steady_clock;
  static std::atomic<Clock::rep> next{0};
  const auto now = Clock::now().time_since_epoch();
  auto due = next.load(std::memory_order_relaxed);
  const auto after = now + std::chrono::seconds(1);
  if (now.count() < due) return;
  if (next.compare_exchange_strong(due, after.count(), std::memory_order_relaxed)) trim_blocks();
}

}  // namespace batchrpc::detail
