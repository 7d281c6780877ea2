#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "largest_allocation.hpp"
#include "long_tests.hpp"
#include "node/metrics_of.hpp"
#include "node/raw_target.hpp"
#include "node/virtual_world.hpp"
#include "peers/member.hpp"

// Promise 5 of docs/reliability.md: bounded memory.

namespace credit {
struct Thing {
  int value() const { return number; }
  int number = 5;
};
}  // namespace credit

namespace batchrpc {
namespace credit_test {

using namespace std::chrono_literals;
using test::outcome;
using wire::FrameKind;

constexpr std::size_t kKiB = 1024;

/// Two nodes with little credit. One exposes what takes bytes and answers at once ("size"), and
/// what never answers ("keep").
struct CreditPair {
  explicit CreditPair(std::uint64_t credit = 64 * kKiB)
      : a(world.root("a")), b([&] {
          NodeOptions options = world.joining("b");
          options.limits.max_outstanding_bytes = credit;
          return Node(options);
        }()) {
    a.expose("size", [](const Bytes& bytes) { return bytes.size(); });
    a.expose("keep", [this](Bytes bytes) {
      kept.push_back(std::move(bytes));
      return never.emplace_back().get_future();
    });
    a.expose("give", [](std::size_t size) { return Bytes::allocate(size); });
  }

  [[nodiscard]] Future<std::size_t> size(std::size_t bytes) const {
    return b.call<std::size_t(Bytes)>("a", "size", Bytes::allocate(bytes));
  }
  [[nodiscard]] Future<int> keep(std::size_t bytes, Duration timeout = 60s) const {
    CallOptions options;
    options.timeout = timeout;
    return b.peer("a").with(options).call<int(Bytes)>("keep", Bytes::allocate(bytes));
  }

  test::VirtualWorld world;
  std::vector<Bytes> kept;
  std::vector<Promise<int>> never;
  Node a;
  Node b;
};

TEST_CASE("promise 5: calls beyond the credit are Overloaded, and say why") {
  const CreditPair pair;
  CHECK(pair.size(1).get() == 1);
  pair.world.network->isolate("a");
  auto first = pair.size(40 * kKiB);
  const auto refused = outcome(pair.size(30 * kKiB));
  CHECK(refused.code() == ErrorCode::overloaded);
  CHECK_FALSE(test::may_have_run(refused.error()));
  const std::string text = describe(refused.error());
  CHECK(text.find("'size' was not sent to a: its 30") != std::string::npos);
  CHECK(text.find("NodeOptions::limits.max_outstanding_bytes (65536)") != std::string::npos);
  CHECK(text.find("wait_for_credit()") != std::string::npos);
  CHECK_THROWS_AS((pair.b.peer("a").notify<void(Bytes)>("size", Bytes::allocate(30 * kKiB))),
                  Overloaded);
  auto smaller = pair.size(10 * kKiB);
  pair.world.network->rejoin("a");
  CHECK(std::move(first).get() == 40 * kKiB);
  CHECK(std::move(smaller).get() == 10 * kKiB);
  CHECK(pair.size(60 * kKiB).get() == 60 * kKiB);
}

TEST_CASE("promise 5: a callee that reads and never answers holds no more than the credit") {
  CreditPair pair;
  std::vector<Future<int>> taken;
  int refused = 0;
  for (int i = 0; i < 100; ++i) {
    Future<int> call = pair.keep(10 * kKiB, 10s);
    pair.world.run_for(10ms);
    if (call.ready()) {
      CHECK(outcome(std::move(call)).code() == ErrorCode::overloaded);
      ++refused;
    } else {
      taken.push_back(std::move(call));
    }
  }
  CHECK(taken.size() == 6);
  CHECK(refused == 94);
  CHECK(pair.kept.size() == 6);
  // What has ended gives its credit back.
  pair.world.run_for(10s);
  for (Future<int>& call : taken)
    CHECK(outcome(std::move(call)).code() == ErrorCode::timed_out);
  CHECK(pair.size(60 * kKiB).get() == 60 * kKiB);
}

TEST_CASE("promise 5: a call larger than the whole credit goes when at most half is used") {
  CreditPair pair;
  CHECK(pair.size(500 * kKiB).get() == 500 * kKiB);
  auto small = pair.keep(30 * kKiB);
  CHECK(pair.size(500 * kKiB).get() == 500 * kKiB);
  auto more = pair.keep(10 * kKiB);
  CHECK(outcome(pair.size(500 * kKiB)).code() == ErrorCode::overloaded);
  pair.never.front().set_value(1);
  CHECK(std::move(small).get() == 1);
  CHECK(pair.size(500 * kKiB).get() == 500 * kKiB);
}

TEST_CASE("promise 5: who waits for credit is served in order, and all get through") {
  CreditPair pair;
  std::vector<int> order;
  std::vector<Future<std::size_t>> sizes;
  pair.world.network->isolate("a");
  const auto bytes_of = [](int i) { return (static_cast<std::size_t>(i) % 7 + 1) * 8 * kKiB; };
  for (int i = 0; i < 40; ++i) {
    const std::size_t bytes = bytes_of(i);
    sizes.push_back(pair.b.peer("a").wait_for_credit(bytes).then([&pair, &order, i, bytes] {
      order.push_back(i);
      return pair.size(bytes);
    }));
  }
  CHECK(order.size() < 5);
  pair.world.run_for(1s);
  CHECK(order.size() < 5);
  pair.world.network->rejoin("a");
  for (int i = 0; i < 40; ++i)
    CHECK(std::move(sizes[static_cast<std::size_t>(i)]).get() == bytes_of(i));
  for (int i = 0; i < 40; ++i)
    CHECK(order[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("promise 5: room that a wait was promised and does not use is others' after a ping") {
  const CreditPair pair;
  CHECK(pair.b.peer("a").wait_for_credit(50 * kKiB).ready());
  auto second = pair.b.peer("a").wait_for_credit(50 * kKiB);
  CHECK_FALSE(second.ready());
  CHECK(outcome(std::move(second)));
  CHECK(pair.world.time() <= 2s);
}

TEST_CASE(
    "promise 5: a wait for credit fails when the peer is lost, is not known, or the node ends") {
  CreditPair pair;
  CHECK(outcome(pair.b.peer("nobody").wait_for_credit(1)).code() == ErrorCode::not_found);
  auto call = pair.keep(50 * kKiB);
  auto lost = pair.b.peer("a").wait_for_credit(50 * kKiB);
  pair.world.run_for(100ms);
  CHECK_FALSE(lost.ready());
  pair.world.kill("a");
  CHECK(outcome(std::move(lost)).code() == ErrorCode::not_sent);
  CHECK(outcome(std::move(call)).code() == ErrorCode::peer_lost);
  CHECK(pair.b.peer("a").wait_for_credit(50 * kKiB).ready());  // as a call to it would be tried

  CreditPair other;
  call = other.keep(50 * kKiB);
  auto ended = other.b.peer("a").wait_for_credit(50 * kKiB);
  other.b.shutdown(0s);
  CHECK(outcome(std::move(ended)).code() == ErrorCode::shut_down);
  CHECK(outcome(other.b.peer("a").wait_for_credit(1)).code() == ErrorCode::shut_down);
}

TEST_CASE("promise 5: references are created, passed on and released without credit") {
  CreditPair pair;
  pair.a.expose_class<credit::Thing()>();
  pair.a.expose<&credit::Thing::value>();
  pair.a.expose("use", [](RRef<credit::Thing> thing) { return thing.local().get()->value(); });
  auto thing = pair.b.create<credit::Thing()>("a");
  CHECK(thing.call<&credit::Thing::value>().get() == 5);
  pair.world.run_for(2s);
  auto call = pair.keep(65'000);
  CHECK(outcome(pair.size(4 * kKiB)).code() == ErrorCode::overloaded);
  CHECK(pair.b.call<int(RRef<credit::Thing>)>("a", "use", thing).get() == 5);
  thing = {};
  pair.never.front().set_value(1);
  CHECK(std::move(call).get() == 1);
}

TEST_CASE("promise 5: calls of who does not take the replies are refused until he does") {
  test::VirtualWorld world;
  NodeOptions little = world.options("root");
  little.limits.max_outstanding_bytes = 64 * kKiB;
  const Node root(little);
  root.expose("give", [](std::size_t size) { return Bytes::allocate(size); });
  root.expose("size", [](const Bytes& bytes) { return bytes.size(); });
  test::RawPeer peer(world);
  peer.say_hello();
  peer.send(test::define(0, "give", signature<Bytes, std::size_t>()));
  for (std::uint64_t id = 1; id <= 20; ++id)
    peer.send(test::call_frame({.number = 0, .id = id}, std::size_t{400 * kKiB}));
  int results = 0;
  int errors = 0;
  for (int rounds = 0; rounds < 100; ++rounds) {
    for (const auto& words : peer.frames()) {
      const auto kind = wire::parse_frame(words).header.kind;
      results += kind == FrameKind::result ? 1 : 0;
      errors += kind == FrameKind::error ? 1 : 0;
    }
    world.run_for(10ms);
  }
  CHECK(results >= 1);
  CHECK(errors >= 15);
  CHECK(results + errors == 20);
  CHECK_FALSE(peer.closed());
  peer.acknowledge();
  peer.send(test::call_frame({.number = 0, .id = 21}, std::size_t{1}));
  CHECK(peer.frame(FrameKind::result));
}

TEST_CASE("promise 5: a large call is refused for the replies as a whole, and its caller goes on") {
  test::VirtualWorld world;
  world.network->set_link({.capacity = 16 * kKiB});
  NodeOptions little = world.options("root");
  little.limits.max_outstanding_bytes = 64 * kKiB;
  const Node root(little);
  root.expose("give", [](std::size_t size) { return Bytes::allocate(size); });
  root.expose("size", [](const Bytes& bytes) { return bytes.size(); });
  const Node caller = world.join("caller");
  CHECK(caller.call<std::size_t(Bytes)>("root", "size", Bytes::allocate(1)).get() == 1);
  auto given = caller.call<Bytes(std::size_t)>("root", "give", std::size_t{2'000'000});
  auto large = caller.call<std::size_t(Bytes)>("root", "size", Bytes::allocate(200'000));
  const auto refused = outcome(std::move(large));
  CHECK(refused.code() == ErrorCode::overloaded);
  CHECK_FALSE(test::may_have_run(refused.error()));
  CHECK(describe(refused.error()).find("bytes of replies are waiting for their caller") !=
        std::string::npos);
  CHECK(std::move(given).get().size() == 2'000'000);
  CHECK(caller.call<std::size_t(Bytes)>("root", "size", Bytes::allocate(200'000)).get() == 200'000);
  world.run_for(1s);  // the last answer is counted
  const NodeMetrics metrics = root.metrics();
  const CallMetrics* const answered = test::answered_of(metrics, "size");
  CHECK(answered->errors.of(ErrorCode::overloaded) == 1);
  CHECK(answered->bytes_sent == test::made_of(caller.metrics(), "size")->bytes_received);
}

TEST_CASE("who calls the library without end and takes no reply is dropped, too") {
  const test::VirtualWorld world;
  NodeOptions little = world.options("root");
  little.limits.max_outstanding_bytes = 64 * kKiB;
  const Node root(little);
  test::RawPeer peer(world);
  peer.say_hello();
  peer.send(test::define(0, "batchrpc.who", signature<Member>()));
  std::vector<Word> calls;
  for (std::uint64_t id = 1; id <= 1000; ++id) {
    const auto call = test::call_frame({.number = 0, .id = id}, 0);
    calls.insert(calls.end(), call.begin(), call.end());
  }
  const std::size_t before = test::allocated_bytes();
  for (int i = 0; i < 200 && !world.log.contain("dropped"); ++i)
    peer.send(calls);
  CHECK(world.log.contain("it keeps calling but does not read its replies"));
  CHECK(test::allocated_bytes() < before + std::size_t{100} * 1024 * kKiB);
}

TEST_CASE("promise 5: who calls without end and takes no reply is dropped, with the reason") {
  test::VirtualWorld world;
  NodeOptions little = world.options("root");
  little.limits.max_outstanding_bytes = 64 * kKiB;
  const Node root(little);
  root.expose("give", [](std::size_t size) { return Bytes::allocate(size); });
  {
    test::RawPeer peer(world);
    peer.say_hello();
    peer.send(test::define(0, "give", signature<Bytes, std::size_t>()));
    peer.send(test::call_frame({.number = 0, .id = 1}, std::size_t{1024 * kKiB}));
    std::vector<Word> calls;
    for (std::uint64_t id = 2; id <= 1000; ++id) {
      const auto call = test::call_frame({.number = 0, .id = id}, std::size_t{1});
      calls.insert(calls.end(), call.begin(), call.end());
    }
    for (int i = 0; i < 100 && !world.log.contain("dropped"); ++i)
      peer.send(calls);
    CHECK(world.log.contain("it keeps calling but does not read its replies"));
  }
  const Node other = world.join("other");
  CHECK(other.call<Bytes(std::size_t)>("root", "give", std::size_t{7}).get().size() == 7);
}

// --- two nodes that flood each other

std::size_t below(std::mt19937_64& random, std::size_t end) { return random() % end; }

/// One node of two, whose handlers call back, and so on.
class Flooder {
 public:
  Flooder(Node node, std::string peer, std::uint64_t seed)
      : node_(std::move(node)), peer_(std::move(peer)), random_(seed) {
    node_.expose("back", [this](int depth, const Bytes&) -> Future<int> {
      if (depth == 0) return make_ready_future(1);
      return call(depth - 1, waits_).then([](int depth_there) { return depth_there + 1; });
    });
  }

  /// `waits`: also its handlers wait for credit rather than be refused.
  void begin(int calls, bool waits) {
    waits_ = waits;
    for (int i = 0; i < calls; ++i) {
      futures_.push_back(
          call(static_cast<int>(below(random_, 4)), waits || below(random_, 2) == 0));
    }
  }
  /// What its calls came to, each of which has ended: the first bad one.
  [[nodiscard]] std::string verdict(bool waits) {
    std::string bad;
    for (Future<int>& future : futures_) {
      if (!future.ready()) return "a call has not ended";
      const auto result = outcome(std::move(future));
      const bool good = result || (!waits && result.code() == ErrorCode::overloaded);
      if (!good && bad.empty()) bad = describe(result.error());
    }
    futures_.clear();
    return bad;
  }
  [[nodiscard]] bool is_done() const {
    for (const Future<int>& future : futures_) {
      if (!future.ready()) return false;
    }
    return true;
  }

 private:
  Future<int> call(int depth, bool waits) {
    const std::size_t bytes = below(random_, 30) * kKiB;
    if (!waits) return send(depth, bytes);
    return node_.peer(peer_).wait_for_credit(bytes).then(
        [this, depth, bytes] { return send(depth, bytes); });
  }
  Future<int> send(int depth, std::size_t bytes) {
    return node_.call<int(int, Bytes)>(peer_, "back", depth, Bytes::allocate(bytes));
  }

  Node node_;
  std::string peer_;
  std::mt19937_64 random_;
  bool waits_ = false;
  std::vector<Future<int>> futures_;
};

TEST_CASE("promise 5: two nodes that flood each other with calls that call back do not deadlock") {
  for_each_seed(0, test::random_programs(), [](std::uint64_t seed) {
    const test::VirtualWorld world(seed);
    const std::size_t capacity = std::size_t{4096} << (seed % 5);
    world.network->set_link({.latency = 100us, .jitter = 1ms, .capacity = capacity});
    const auto options = [](NodeOptions of_node) {
      of_node.limits.max_outstanding_bytes = 64 * kKiB;
      of_node.logging.level = LogLevel::off;
      return of_node;
    };
    Node root(options(world.options("a")));
    Node joined(options(world.joining("b")));
    Flooder a(std::move(root), "b", seed);
    Flooder b(std::move(joined), "a", seed + 1);
    const bool waits = seed % 2 == 0;
    const int calls = static_cast<int>(seed / 2 % 5) + 2;
    a.begin(calls, waits);
    b.begin(calls, waits);
    const TimePoint began = world.loop->now();
    while (!(a.is_done() && b.is_done()) && world.loop->now() - began < 30s)
      world.run_for(5ms);
    const std::string verdict = a.verdict(waits) + b.verdict(waits);
    INFO(verdict);
    REQUIRE(verdict.empty());
  });
}

}  // namespace credit_test
}  // namespace batchrpc
