#include <catch2/catch.hpp>
#include <numeric>

#include "batchrpc/batchrpc.hpp"
#include "largest_allocation.hpp"
#include "node/virtual_world.hpp"

// Bytes that travel beside the envelope.

namespace batchrpc {
namespace payload_test {

using namespace std::chrono_literals;
using test::outcome;

constexpr std::size_t kMiB = std::size_t{1} << 20;

Bytes pattern(std::size_t size, std::uint32_t seed) {
  Bytes bytes = Bytes::allocate(size);
  std::uint32_t value = seed * 2654435761u + 1;
  for (std::size_t i = 0; i < size; ++i) {
    value = value * 1664525u + 1013904223u;
    bytes.mutable_data()[i] = static_cast<std::byte>(value >> 24);
  }
  return bytes;
}

struct Pair : test::NodePair {
  Pair() {
    b.expose("echo", [](Bytes bytes) { return bytes; });
    b.expose("size", [](const Bytes& bytes) { return bytes.size(); });
    b.expose("twice", [](int x) { return 2 * x; });
  }
};

TEST_CASE("bytes of every size come back as they were, those around every limit as well") {
  Pair pair;
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{9},
        16 * 1024 - std::size_t{1}, std::size_t{16 * 1024}, std::size_t{16 * 1024 + 1},
        64 * 1024 - std::size_t{3}, std::size_t{128 * 1024}, 256 * 1024 - std::size_t{1},
        std::size_t{256 * 1024}, std::size_t{256 * 1024 + 1}, 2 * kMiB + 5}) {
    const Bytes bytes = pattern(size, static_cast<std::uint32_t>(size));
    INFO(size << " bytes");
    CHECK(pair.a.call<Bytes(Bytes)>("b", "echo", bytes).get() == bytes);
  }
}

TEST_CASE("a payload whose parts that leave eager end anywhere comes whole") {
  Pair pair;
  const Bytes odd = pattern(17, 1);
  const Bytes large = pattern(3 * kMiB + 5, 2);
  pair.b.expose("are", [&](const Bytes& x, const Bytes& y) { return x == odd && y == large; });
  CHECK(pair.a.call<bool(Bytes, Bytes)>("b", "are", odd, large).get());
}

TEST_CASE("64 MiB travel both ways") {
  Pair pair;
  const Bytes bytes = pattern(64 * kMiB + 3, 1);
  auto answer = pair.a.call<Bytes(Bytes)>("b", "echo", bytes);
  const Bytes back = std::move(answer).get();
  CHECK(back == bytes);
  CHECK(back.data() != bytes.data());
}

TEST_CASE("what is received is aligned to 64 bytes") {
  Pair pair;
  std::vector<std::uintptr_t> places;
  pair.b.expose("three", [&places](const Bytes& x, const Bytes& y, const Bytes& z) {
    for (const Bytes* bytes : {&x, &y, &z})
      places.push_back(reinterpret_cast<std::uintptr_t>(bytes->data()));
  });
  using Three = void(Bytes, Bytes, Bytes);
  pair.a.call<Three>("b", "three", pattern(20'001, 1), pattern(17'003, 2), pattern(300'007, 3))
      .get();
  for (const std::uintptr_t place : places)
    CHECK(place % Bytes::kAlignment == 0);
}

TEST_CASE("large bytes are sent from where they lie, and let go when the call is over") {
  Pair pair;
  auto memory = std::make_shared<std::vector<std::byte>>(4 * kMiB);
  const std::weak_ptr<void> weak = memory;
  test::reset_largest_allocation();
  auto size = pair.a.call<std::size_t(Bytes)>("b", "size",
                                              Bytes(memory, std::span<const std::byte>(*memory)));
  memory.reset();
  CHECK(test::largest_allocation() < kMiB);  // queued, and nothing was copied
  CHECK_FALSE(weak.expired());
  CHECK(std::move(size).get() == 4 * kMiB);
  CHECK(test::largest_allocation() < 5 * kMiB);
  CHECK(weak.expired());
}

TEST_CASE("a small call overtakes a large one") {
  Pair pair;
  // 64 KiB a millisecond.
  pair.world.network->set_link("a", "b", {.latency = 1ms, .capacity = 64 * 1024});
  const Node c = pair.world.join("c");
  const Node d = pair.world.join("d");
  pair.world.network->set_link("c", "d", {.latency = 1ms, .capacity = 64 * 1024});
  d.expose("size", [](const Bytes& bytes) { return bytes.size(); });
  d.expose("twice", [](int x) { return 2 * x; });
  d.expose("make", [](std::uint64_t size) { return Bytes::allocate(size); });
  CHECK(c.call<int(int)>("d", "twice", 1).get() == 2);

  auto large = c.call<std::size_t(Bytes)>("d", "size", Bytes::allocate(16 * kMiB));
  pair.world.run_for(5ms);
  TimePoint start = pair.world.loop->now();
  CHECK(c.call<int(int)>("d", "twice", 4).get() == 8);
  CHECK(pair.world.loop->now() - start < 40ms);
  CHECK_FALSE(large.ready());
  CHECK(std::move(large).get() == 16 * kMiB);
  CHECK(pair.world.loop->now() - start > 200ms);

  // The same for a large reply.
  auto reply = c.call<Bytes(std::uint64_t)>("d", "make", std::uint64_t{16} * kMiB);
  pair.world.run_for(5ms);
  start = pair.world.loop->now();
  CHECK(c.call<int(int)>("d", "twice", 4).get() == 8);
  CHECK(pair.world.loop->now() - start < 40ms);
  CHECK_FALSE(reply.ready());
  CHECK(std::move(reply).get().size() == 16 * kMiB);
}

TEST_CASE("many large calls and replies at once do not mix") {
  Pair pair;
  pair.world.network->set_link({.latency = 1ms, .jitter = 1ms, .capacity = 100'000});
  const Node c = pair.world.join("c");
  pair.b.expose("both", [](const std::string& text, Bytes first, Bytes second) {
    return std::tuple(second, text, first);
  });
  using Both = std::tuple<Bytes, std::string, Bytes>(std::string, Bytes, Bytes);
  std::vector<Future<std::tuple<Bytes, std::string, Bytes>>> answers;
  for (std::uint32_t i = 0; i < 20; ++i) {
    answers.push_back(c.call<Both>("b", "both", std::to_string(i), pattern(20'000 + i * 5000, i),
                                   pattern(i % 3 == 0 ? 100 : 300'000, 100 + i)));
  }
  for (std::uint32_t i = 0; i < 20; ++i) {
    const auto [second, text, first] = std::move(answers[i]).get();
    CHECK(text == std::to_string(i));
    CHECK(first == pattern(20'000 + i * 5000, i));
    CHECK(second == pattern(i % 3 == 0 ? 100 : 300'000, 100 + i));
  }
}

TEST_CASE("several large notifications at once arrive, each whole") {
  Pair pair;
  std::vector<Bytes> seen;
  pair.b.expose("keep", [&seen](Bytes bytes) { seen.push_back(std::move(bytes)); });
  for (std::uint32_t i = 0; i < 5; ++i)
    pair.a.peer("b").notify<void(Bytes)>("keep", pattern(600'000 + i, i));
  CHECK(pair.a.call<int(int)>("b", "twice", 1).get() == 2);
  pair.world.run_for(1s);
  REQUIRE(seen.size() == 5);
  for (std::uint32_t i = 0; i < 5; ++i)
    CHECK(seen[i] == pattern(600'000 + i, i));
}

TEST_CASE("a call carries up to 4096 large payloads") {
  Pair pair;
  pair.b.expose("sizes", [](const std::vector<Bytes>& all) {
    return std::accumulate(all.begin(), all.end(), std::size_t{0},
                           [](std::size_t sum, const Bytes& bytes) { return sum + bytes.size(); });
  });
  using Sizes = std::size_t(std::vector<Bytes>);
  const Bytes one = Bytes::allocate(16 * 1024 + 1);
  CHECK(pair.a.call<Sizes>("b", "sizes", std::vector<Bytes>(4096, one)).get() == 4096 * one.size());
  const auto more = outcome(pair.a.call<Sizes>("b", "sizes", std::vector<Bytes>(4097, one)));
  CHECK(more.code() == ErrorCode::invalid_argument);
  CHECK(pair.a.call<int(int)>("b", "twice", 1).get() == 2);
}

TEST_CASE("a call that times out while its reply comes in is over, and the rest is dropped") {
  Pair pair;
  const Node c = pair.world.join("c");
  pair.world.network->set_link("b", "c", {.latency = 1ms, .capacity = 64 * 1024});
  pair.b.expose("make", [](std::uint64_t size) { return Bytes::allocate(size); });
  auto reply = c.peer("b")
                   .with({.timeout = 20ms})
                   .call<Bytes(std::uint64_t)>("make", std::uint64_t{8} * kMiB);
  const auto result = outcome(std::move(reply));
  CHECK(result.code() == ErrorCode::timed_out);
  CHECK(c.call<int(int)>("b", "twice", 3).get() == 6);
  auto large = c.call<std::size_t(Bytes)>("b", "size", Bytes::allocate(kMiB));
  CHECK(std::move(large).get() == kMiB);
}

TEST_CASE("the arguments of a handler may be kept by it") {
  Pair pair;
  std::vector<Bytes> kept;
  pair.b.expose("keep", [&kept](Bytes bytes) { kept.push_back(std::move(bytes)); });
  for (const std::size_t size : {std::size_t{10}, std::size_t{10'000}, std::size_t{100'000}})
    pair.a.call<void(Bytes)>("b", "keep", pattern(size, 3)).get();
  for (std::uint32_t i = 0; i < 10; ++i)
    (void)pair.a.call<Bytes(Bytes)>("b", "echo", pattern(100'000, i)).get();
  CHECK(kept[0] == pattern(10, 3));
  CHECK(kept[1] == pattern(10'000, 3));
  CHECK(kept[2] == pattern(100'000, 3));
}

TEST_CASE("an asynchronous handler keeps its large arguments until it answers") {
  Pair pair;
  Promise<void> go;
  auto ready = std::make_shared<Future<void>>(go.get_future());
  pair.b.expose("later", [ready](const Bytes& bytes) -> Future<std::size_t> {
    co_await std::move(*ready);
    co_return bytes == pattern(100'000, 9) ? bytes.size() : 0;
  });
  auto size = pair.a.call<std::size_t(Bytes)>("b", "later", pattern(100'000, 9));
  pair.world.run_for(1s);
  for (std::uint32_t i = 0; i < 10; ++i)
    (void)pair.a.call<Bytes(Bytes)>("b", "echo", pattern(100'000, i)).get();
  go.set_value();
  CHECK(std::move(size).get() == 100'000);
}

TEST_CASE("large bytes travel to oneself as well") {
  Pair pair;
  const Bytes bytes = pattern(3 * kMiB, 5);
  CHECK(pair.b.call<Bytes(Bytes)>("b", "echo", bytes).get() == bytes);
}

TEST_CASE("what payloads have taken is given back") {
  Pair pair;
  const auto round = [&] {
    for (std::uint32_t i = 0; i < 20; ++i)
      (void)pair.a.call<Bytes(Bytes)>("b", "echo", Bytes::allocate(kMiB)).get();
    pair.world.run_for(3s);
  };
  round();
  const std::size_t before = test::allocated_bytes();
  round();
  CHECK(test::allocated_bytes() < before + 64 * 1024);
}

}  // namespace payload_test
}  // namespace batchrpc
