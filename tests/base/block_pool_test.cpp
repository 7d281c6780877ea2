#include "batchrpc/base/block_pool.hpp"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "sanitizers.hpp"

namespace batchrpc::detail {
namespace block_pool_test {

TEST_CASE("blocks of every size hold what they were asked for, apart from each other") {
  std::mt19937 random(7);
  struct Taken {
    std::unique_ptr<unsigned char[]> copy;
    std::size_t size;
  };
  std::map<unsigned char*, Taken> taken;
  for (int i = 0; i < 20'000; ++i) {
    if (random() % 2 == 0 || taken.empty()) {
      const std::size_t size = random() % 700;
      auto* const block = static_cast<unsigned char*>(allocate_block(size));
      REQUIRE(reinterpret_cast<std::uintptr_t>(block) % alignof(std::max_align_t) == 0);
      auto copy = std::make_unique<unsigned char[]>(size);
      for (std::size_t at = 0; at < size; ++at)
        block[at] = copy[at] = static_cast<unsigned char>(random());
      REQUIRE(taken.emplace(block, Taken{std::move(copy), size}).second);
    } else {
      auto at = taken.begin();
      std::advance(at, random() % std::min<std::size_t>(taken.size(), 50));
      const auto& [block, how] = *at;
      REQUIRE(std::memcmp(block, how.copy.get(), how.size) == 0);
      free_block(block, how.size);
      taken.erase(at);
    }
  }
  for (const auto& [block, how] : taken) {
    CHECK(std::memcmp(block, how.copy.get(), how.size) == 0);
    free_block(block, how.size);
  }
  free_block(nullptr, 100);
}

TEST_CASE("blocks that go from thread to thread are in one thread's hands at a time", "[threads]") {
  constexpr std::size_t kThreads = 4;
  constexpr int kRounds = 500;
  constexpr std::size_t kAtOnce = 100;
  constexpr std::size_t kSize = 64;
  std::array<std::vector<void*>, kThreads> handed_on;
  std::array<std::mutex, kThreads> mutexes;
  std::atomic<bool> mixed_up{false};
  std::vector<std::thread> threads;
  for (std::size_t number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      for (int round = 0; round < kRounds; ++round) {
        std::vector<void*> blocks;
        for (std::size_t i = 0; i < kAtOnce; ++i) {
          blocks.push_back(allocate_block(kSize));
          std::memset(blocks.back(), static_cast<int>(number), kSize);
        }
        for (const void* const block : blocks) {
          const auto* const bytes = static_cast<const unsigned char*>(block);
          if (std::count(bytes, bytes + kSize, number) != kSize) mixed_up = true;
        }
        {
          const std::lock_guard lock(mutexes[number]);
          blocks.swap(handed_on[number]);
        }
        for (void* const block : blocks)
          free_block(block, kSize);
        std::vector<void*> others;
        {
          const std::size_t neighbour = (number + 1) % kThreads;
          const std::lock_guard lock(mutexes[neighbour]);
          others.swap(handed_on[neighbour]);
        }
        for (void* const block : others)
          free_block(block, kSize);
        if (round % 50 == 0) trim_blocks();
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  for (const auto& blocks : handed_on) {
    for (void* const block : blocks)
      free_block(block, kSize);
  }
  CHECK_FALSE(mixed_up);
}

struct alignas(64) OverAligned : Pooled {
  virtual ~OverAligned() = default;
  char bytes[64]{};
};
struct Derived final : OverAligned {
  char more[64]{};
};
struct Small : Pooled {
  virtual ~Small() = default;
};
struct Larger final : Small {
  char bytes[300]{};
};

TEST_CASE("objects of pooled classes are aligned as they are to be") {
  std::vector<std::unique_ptr<OverAligned>> many;
  for (int i = 0; i < 100; ++i) {
    many.push_back(std::make_unique<Derived>());
    CHECK(reinterpret_cast<std::uintptr_t>(many.back().get()) % 64 == 0);
  }
}

#if !BATCHRPC_TEST_ASAN  // where nothing is pooled

std::set<void*> allocate_many(std::size_t count, std::size_t size) {
  std::set<void*> blocks;
  for (std::size_t i = 0; i < count; ++i)
    blocks.insert(allocate_block(size));
  return blocks;
}
void free_all(const std::set<void*>& blocks, std::size_t size) {
  for (void* const block : blocks)
    free_block(block, size);
}

void give_back_free_blocks() {
  for (int i = 0; i < 32; ++i)
    trim_blocks();
}

// What a thread frees last it is given first.
TEST_CASE("blocks are freed to where blocks of their size are taken from") {
  Small* const object = new Larger;  // NOLINT: deleted as what it is, by its base
  void* const of_object = object;
  delete object;
  void* const again = allocate_block(sizeof(Larger));
  CHECK(again == of_object);
  free_block(again, sizeof(Larger));

  PoolAllocator<std::uint64_t> allocator;
  std::uint64_t* const words = allocator.allocate(20);
  allocator.deallocate(words, 20);
  CHECK(allocate_block(160) == words);
  free_block(words, 160);
  CHECK_THROWS_AS(allocator.allocate(static_cast<std::size_t>(-1)), std::bad_alloc);
}

TEST_CASE("a thread's free blocks are for the others when it has ended", "[threads]") {
  constexpr std::size_t kSize = 496;
  constexpr std::size_t kMany = 320;
  give_back_free_blocks();
  std::set<void*> blocks;
  std::thread([&] {
    blocks = allocate_many(kMany, kSize);
    free_all(blocks, kSize);
  }).join();
  // What is not given again stays taken, so that the general allocator cannot give it either.
  const auto taken = allocate_many(kMany, kSize);
  CHECK(taken == blocks);
  free_all(taken, kSize);
}

#if !BATCHRPC_TEST_TSAN  // which has an allocator of its own

struct LastUser {
  ~LastUser() {
    for (std::size_t size = 16; size <= 512; size += 16)
      free_block(allocate_block(size), size);
  }
};

TEST_CASE("what a thread frees as the last of all is given back at once", "[threads]") {
  give_back_free_blocks();
  const auto use_last = [] {
    thread_local LastUser last;  // made first, and so destroyed after what the pool keeps
    (void)&last;
    free_block(allocate_block(100), 100);
  };
  std::thread(use_last).join();
  const std::size_t before = ::mallinfo2().uordblks;
  for (int i = 0; i < 200; ++i)
    std::thread(use_last).join();
  give_back_free_blocks();
  CHECK(::mallinfo2().uordblks < before + 10'000);
}

TEST_CASE("free blocks that nobody needs are given back little by little, others are kept") {
  constexpr std::size_t kSize = 496;
  constexpr std::size_t kTaken = kSize + 16;  // by the general allocator
  give_back_free_blocks();
  const std::size_t before = ::mallinfo2().uordblks;
  free_all(allocate_many(640, kSize), kSize);
  trim_blocks();  // all of them may yet be needed
  CHECK(::mallinfo2().uordblks >= before + 640 * kSize);
  for (int i = 0; i < 32; ++i) {
    free_all(allocate_many(320, kSize), kSize);
    trim_blocks();
  }
  CHECK(::mallinfo2().uordblks < before + 360 * kTaken);
  CHECK(::mallinfo2().uordblks >= before + 320 * kSize);
  give_back_free_blocks();
  CHECK(::mallinfo2().uordblks < before + 40 * kTaken);
}

TEST_CASE("ticks, however many, give little back at a time") {
  constexpr std::size_t kSize = 496;
  give_back_free_blocks();
  const std::size_t before = ::mallinfo2().uordblks;
  free_all(allocate_many(640, kSize), kSize);
  for (int i = 0; i < 100; ++i)
    trim_blocks_now_and_then();
  CHECK(::mallinfo2().uordblks >= before + 20 * kSize);
  give_back_free_blocks();
}

#endif
#endif

}  // namespace block_pool_test
}  // namespace batchrpc::detail
