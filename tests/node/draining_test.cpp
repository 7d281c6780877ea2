#include <atomic>
#include <catch2/catch.hpp>
#include <optional>

#include "batchrpc/batchrpc.hpp"
#include "node/real_nodes.hpp"

// What is on its way when a node ends: it leaves before the node does.

namespace draining {
int one() { return 1; }
std::size_t size_of(const batchrpc::Bytes& bytes) { return bytes.size(); }
}  // namespace draining

namespace batchrpc {
namespace draining_test {

using namespace std::chrono_literals;
using test::outcome;
using test::RealPair;

constexpr std::size_t kMiB = 1 << 20;

TEST_CASE("a large reply that is on its way when its node ends arrives", "[threads]") {
  for (const auto transport : {test::Sockets::tcp, test::Sockets::unix_only}) {
    RealPair pair(2, transport);
    Promise<void> answered;
    const auto is_answered = answered.get_future();
    pair.a.expose("give", [&] {
      answered.set_value();
      return Bytes::allocate(64 * kMiB);
    });
    auto reply = pair.b.call<Bytes()>("a", "give");
    is_answered.get();
    CHECK(pair.a.shutdown(60s).empty());
    CHECK(std::move(reply).get().size() == 64 * kMiB);
  }
}

TEST_CASE("notifications that are on their way when their node ends arrive", "[threads]") {
  for (const auto transport : {test::Sockets::tcp, test::Sockets::unix_only}) {
    RealPair pair(2, transport);
    constexpr int kSmall = 50'000;
    constexpr int kLarge = 4;
    std::atomic<int> small{0};
    std::atomic<int> large{0};
    Promise<void> all;
    const auto are_there = all.get_future();
    const auto count = [&](std::atomic<int>& number) {
      ++number;
      if (small == kSmall && large == kLarge && all.pending()) all.set_value();
    };
    pair.a.expose("small", [&] { count(small); }, {.short_handler = true});
    pair.a.expose("large", [&](const Bytes&) { count(large); }, {.short_handler = true});
    for (int i = 0; i < kLarge; ++i)
      pair.b.peer("a").notify<void(Bytes)>("large", Bytes::allocate(16 * kMiB));
    for (int i = 0; i < kSmall; ++i)
      pair.b.peer("a").notify<void()>("small");
    CHECK(pair.b.shutdown(60s).empty());
    CHECK(are_there.wait_for(60s));
    CHECK(small == kSmall);
    CHECK(large == kLarge);
  }
}

TEST_CASE("what could not leave by the deadline is named") {
  test::VirtualWorld world;
  Node a = world.root("a");
  const Node b = world.join("b");
  b.expose<&draining::one>();
  CHECK(a.call<&draining::one>("b").get() == 1);
  world.network->partition("a", "b");
  a.peer("b").notify<void(Bytes)>("nothing", Bytes::allocate(16 * kMiB));
  const auto left = a.shutdown(1s);
  REQUIRE(left.size() == 1);
  CHECK_THAT(left[0], Catch::EndsWith(" bytes to b"));
}

TEST_CASE("the deleter of memory that was sent may call the same peer, and wait", "[threads]") {
  for (const auto transport : {test::Sockets::tcp, test::Sockets::unix_only}) {
    RealPair pair(2, transport);
    pair.a.expose<&draining::one>();
    pair.a.expose<&draining::size_of>();
    const std::vector<std::byte> memory(kMiB);
    std::atomic<int> answers{0};
    {
      std::vector<Future<std::size_t>> sent;
      for (int i = 0; i < 3; ++i) {
        std::shared_ptr<const void> owner(memory.data(), [&](const void*) {
          if (pair.b.peer("a").with({.timeout = 30s}).call<&draining::one>().get() == 1) ++answers;
        });
        sent.push_back(pair.b.call<&draining::size_of>("a", Bytes(std::move(owner), memory)));
        sent.push_back(pair.b.call<&draining::size_of>("a", Bytes::allocate(32 * kMiB)));
      }
      for (auto& size : sent)
        CHECK(size.get() >= kMiB);
    }
    CHECK(pair.b.shutdown(30s).empty());
    CHECK(answers == 3);
  }
}

TEST_CASE("the deleter of memory that was sent may end the node", "[threads]") {
  std::optional<RealPair> pair(std::in_place, 2, test::Sockets::tcp);
  pair->a.expose<&draining::size_of>();
  const std::vector<std::byte> memory(kMiB);
  Promise<void> over;
  const auto is_over = over.get_future();
  std::shared_ptr<const void> owner(memory.data(), [&](const void*) {
    const Node ended = std::move(pair->b);
    over.set_value();
  });
  (void)pair->b.call<&draining::size_of>("a", Bytes(std::move(owner), memory));
  CHECK(is_over.wait_for(30s));
}

}  // namespace draining_test
}  // namespace batchrpc
