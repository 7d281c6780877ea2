#include "session/payload_memory.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace batchrpc {
namespace payload_memory_test {

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST_CASE("memory of a large payload is used again for the next one of about its size") {
  const auto memory = std::make_shared<PayloadMemory>();
  const std::byte* first = nullptr;
  {
    const Bytes bytes = memory->allocate(8 * kMiB);
    CHECK(bytes.size() == 8 * kMiB);
    CHECK(reinterpret_cast<std::uintptr_t>(bytes.data()) % Bytes::kAlignment == 0);
    std::memset(bytes.mutable_data(), 1, bytes.size());
    first = bytes.data();
    CHECK(memory->kept_bytes() == 0);
  }
  CHECK(memory->kept_bytes() == 8 * kMiB);
  Bytes again = memory->allocate(8 * kMiB - 1000);
  CHECK(again.data() == first);
  CHECK(again.size() == 8 * kMiB - 1000);
  CHECK(memory->kept_bytes() == 0);
  again = {};
  CHECK(memory->kept_bytes() == 8 * kMiB);  // as a whole
}

TEST_CASE("memory of a large payload is used for none that is larger, or much smaller") {
  const auto memory = std::make_shared<PayloadMemory>();
  const std::size_t size = GENERATE(4 * kMiB, 9 * kMiB);
  { const Bytes room = memory->allocate(32 * kMiB); }  // so that nothing else has to give way
  { const Bytes bytes = memory->allocate(8 * kMiB); }
  const std::size_t kept = memory->kept_bytes();
  const Bytes other = memory->allocate(size);
  CHECK(other.size() == size);
  CHECK(memory->kept_bytes() <= kept);
  CHECK(memory->kept_bytes() % (8 * kMiB) == 0);  // what is kept is kept as a whole
}

TEST_CASE("small payloads are the allocator's") {
  const auto memory = std::make_shared<PayloadMemory>();
  CHECK(memory->allocate(0).empty());
  CHECK(memory->allocate(PayloadMemory::kSmallest - 1).size() == PayloadMemory::kSmallest - 1);
  CHECK(memory->kept_bytes() == 0);
}

TEST_CASE("what is kept and in use together is never more than was in use at one time") {
  const auto memory = std::make_shared<PayloadMemory>();
  {
    std::vector<Bytes> many;
    for (int i = 0; i < 4; ++i)
      many.push_back(memory->allocate(4 * kMiB));
  }
  CHECK(memory->kept_bytes() == 16 * kMiB);
  const Bytes other = memory->allocate(6 * kMiB);  // fits none of those, so two give way
  CHECK(memory->kept_bytes() == 8 * kMiB);
  const Bytes larger = memory->allocate(20 * kMiB);
  CHECK(memory->kept_bytes() == 0);
}

TEST_CASE("what has not been needed for two ticks goes back to the system") {
  const auto memory = std::make_shared<PayloadMemory>();
  { const Bytes bytes = memory->allocate(8 * kMiB); }
  memory->tick();
  CHECK(memory->kept_bytes() == 8 * kMiB);
  { const Bytes bytes = memory->allocate(8 * kMiB); }
  memory->tick();
  CHECK(memory->kept_bytes() == 8 * kMiB);
  memory->tick();
  CHECK(memory->kept_bytes() == 0);

  const Bytes stays = memory->allocate(8 * kMiB);
  { const Bytes bytes = memory->allocate(8 * kMiB); }
  memory->tick();
  memory->tick();
  CHECK(memory->kept_bytes() == 0);  // but for what is in use
  CHECK(stays.size() == 8 * kMiB);
}

TEST_CASE("a node that has ended keeps no memory, and payloads live on") {
  auto memory = std::make_shared<PayloadMemory>();
  { const Bytes bytes = memory->allocate(8 * kMiB); }
  Bytes lives = memory->allocate(4 * kMiB);
  memory->close();
  CHECK(memory->kept_bytes() == 0);
  std::memset(lives.mutable_data(), 1, lives.size());
  const std::weak_ptr<PayloadMemory> weak = memory;
  memory.reset();
  CHECK_FALSE(weak.expired());
  lives = {};
  CHECK(weak.expired());
}

TEST_CASE("payloads are let go of on any thread while others come in", "[threads]") {
  const auto memory = std::make_shared<PayloadMemory>();
  std::atomic<bool> shared{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&memory, &shared, i] {
      Bytes before;
      for (int round = 0; round < 200; ++round) {
        Bytes bytes = memory->allocate(kMiB + static_cast<std::size_t>(i % 2) * kMiB);
        bytes.mutable_data()[0] = static_cast<std::byte>(i);
        bytes.mutable_data()[bytes.size() - 1] = static_cast<std::byte>(round);
        if (round % 50 == 0) memory->tick();
        if (!before.empty() && before.data()[0] != static_cast<std::byte>(i)) shared = true;
        before = std::move(bytes);
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  CHECK_FALSE(shared);
  memory->tick();
  memory->tick();
  CHECK(memory->kept_bytes() == 0);
}

}  // namespace payload_memory_test
}  // namespace batchrpc
