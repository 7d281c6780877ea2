#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/virtual_world.hpp"

// Promise 6: a dead peer is found, and a living one is not taken for dead. How soon: see also
// peer_table_test.cpp; with processes and cables: tests/process/dead_peer_test.cpp.

namespace batchrpc {
namespace dead_peer_test {

using namespace std::chrono_literals;
using test::outcome;
using test::VirtualWorld;

PeerInfo info_of(const Node& node, std::string_view name) {
  for (const PeerInfo& peer : node.peers()) {
    if (peer.name == name) return peer;
  }
  throw std::logic_error("no such peer");
}

/// Keeps so many calls under way to a peer, each beginning when another has ended.
class Load {
 public:
  using Begin = std::function<Future<void>()>;

  Load(int under_way, Begin begin) : state_(std::make_shared<State>()) {
    state_->begin = std::move(begin);
    for (int i = 0; i < under_way; ++i)
      next(state_);
  }
  ~Load() { stop(); }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  void stop() { state_->stopped = true; }
  [[nodiscard]] std::size_t done() const { return state_->done; }
  [[nodiscard]] std::size_t failed() const { return state_->failed; }

 private:
  struct State {
    Begin begin;
    std::size_t done = 0;
    std::size_t failed = 0;
    bool stopped = false;
  };
  static void next(const std::shared_ptr<State>& state) {
    state->begin().then([state](const Result<void>& result) {
      ++(result ? state->done : state->failed);
      if (!state->stopped) next(state);
    });
  }

  std::shared_ptr<State> state_;
};

void check_no_alarm(const Node& node, const Node& peer) {
  const PeerInfo info = info_of(node, peer.name());
  CHECK(info.state == PeerState::connected);
  CHECK(info.reconnects == 0);
}

TEST_CASE("promise 6: an hour under full load, on slow links, and no false alarm") {
  test::NodePair pair;
  // What is queued takes a second to arrive, and pings are behind it.
  const LinkOptions slow{.latency = 400ms, .jitter = 200ms, .capacity = 64 * 1024};
  pair.world.network->set_link(slow);
  const Node c = pair.world.join("c");
  const auto take = [](const Bytes& bytes) { CHECK(bytes.size() == 32 * 1024); };
  pair.b.expose("take", take);
  c.expose("take", take);
  const auto call = [](const Node& from, const char* to) {
    return [&from, to] {
      return from.call<void(Bytes)>(to, "take", Bytes::allocate(std::size_t{32} * 1024));
    };
  };
  std::vector<std::unique_ptr<Load>> loads;
  loads.push_back(std::make_unique<Load>(8, call(pair.b, "c")));
  loads.push_back(std::make_unique<Load>(8, call(c, "b")));
  pair.world.run_for(1h);
  for (const auto& load : loads)
    load->stop();
  pair.world.run_for(10s);
  for (const auto& load : loads) {
    INFO(load->done() << " calls");
    CHECK(load->done() > 3600);
    CHECK(load->failed() == 0);
  }
  check_no_alarm(pair.b, c);
  check_no_alarm(c, pair.b);
  CHECK_FALSE(pair.world.log.contain("is lost"));
}

TEST_CASE("promise 6: a node that computes for 30 s is not dead, nor are the others to it") {
  // In virtual time the nodes share their one thread: all of them stand still meanwhile.
  test::NodePair pair;
  pair.b.expose("compute", [&] {
    pair.world.loop->advance(30s);
    return 1;
  });
  pair.a.expose("add", [](int a, int b) { return a + b; });
  for (int round = 0; round < 3; ++round) {
    CHECK(pair.a.call<int()>("b", "compute").get() == 1);
    pair.world.loop->advance(30s);
    pair.world.run_for(round * 333ms);
    CHECK(pair.b.call<int(int, int)>("a", "add", 1, 2).get() == 3);
    pair.world.run_for(10s);
  }
  check_no_alarm(pair.a, pair.b);
  check_no_alarm(pair.b, pair.a);
  CHECK_FALSE(pair.world.log.contain("is lost"));
}

TEST_CASE(
    "promise 6: a connection that breaks while a node computes for 30 s is made again, and nothing "
    "is lost") {
  test::NodePair pair;
  pair.world.network->set_link({.break_after = 20'000});
  const Node c = pair.world.join("c");
  int ran = 0;
  c.expose("take", [&ran](const std::string& text) {
    ++ran;
    return text.size();
  });
  pair.b.call<std::size_t(std::string)>("c", "take", "warm").get();
  pair.world.network->set_link({});
  // Breaks the connection, which is noticed only after the computation.
  auto size = pair.b.call<std::size_t(std::string)>("c", "take", std::string(30'000, 'x'));
  pair.world.loop->advance(30s);
  const auto answer = outcome(std::move(size));
  REQUIRE(answer);
  CHECK(*answer == 30'000);
  CHECK(ran == 2);
  CHECK_FALSE(pair.world.log.contain("is lost"));
}

TEST_CASE("promise 6: a peer that stands still, is cut off, or has no power is found within 6 s") {
  enum class End { pause, isolate, power_off };
  const auto how = GENERATE(End::pause, End::isolate, End::power_off);
  const bool busy = GENERATE(false, true);
  for (int phase = 0; phase < 20; ++phase) {
    SimulatedWorld world(static_cast<std::uint64_t>(phase) + 1);
    world.network().set_link({.latency = 1ms, .jitter = 1ms});
    const Node a(world.options("a", {.logging = {.level = LogLevel::off}}));
    const Node b(world.options("b", {.logging = {.level = LogLevel::off}}));
    std::vector<Promise<void>> promises;
    b.expose("never", [&] { return promises.emplace_back().get_future(); });
    b.expose("tick", [] {});
    auto call = a.peer("b").with({.timeout = 1h}).call<void()>("never");
    world.run_for(3s + phase * 50ms);
    const Duration gone = world.time();
    if (how == End::pause) world.pause("b");
    if (how == End::isolate) world.network().isolate("b");
    if (how == End::power_off) world.power_off("b");
    while (!call.ready() && world.time() - gone < 10s) {
      if (busy) a.peer("b").notify<void()>("tick");
      world.run_for(10ms);
    }
    INFO("phase " << phase << ", " << (world.time() - gone) / 1ms << " ms");
    REQUIRE(call.ready());
    CHECK(outcome(std::move(call)).code() == ErrorCode::peer_lost);
    CHECK(world.time() - gone <= 6s);
    world.run_for(1s);
    const Duration again = world.time();
    auto to_lost = a.peer("b").with({.timeout = 1h}).call<void()>("never");
    while (!to_lost.ready() && world.time() - again < 20s)
      world.run_for(10ms);
    REQUIRE(to_lost.ready());
    CHECK(outcome(std::move(to_lost)).code() == ErrorCode::not_sent);
    CHECK(world.time() - again <= 5010ms);
  }
}

TEST_CASE("promise 6: 1 GiB takes 8 minutes to arrive, and no false alarm") {
  test::NodePair pair;
  pair.world.network->set_link({.latency = 500ms, .capacity = std::size_t{1} << 20});
  const Node c = pair.world.join("c");
  constexpr std::size_t kSize = std::size_t{1} << 30;
  c.expose("size", [](const Bytes& bytes) { return bytes.size(); });
  const Duration began = pair.world.time();
  auto future = pair.b.peer("c")
                    .with(CallOptions{.timeout = 1h})
                    .call<std::size_t(Bytes)>("size", Bytes::allocate(kSize));
  CHECK(std::move(future).get() == kSize);
  INFO("took " << (pair.world.time() - began) / 1s << " s");
  CHECK(pair.world.time() - began > 5min);
  check_no_alarm(pair.b, c);
  check_no_alarm(c, pair.b);
  CHECK_FALSE(pair.world.log.contain("is lost"));
}

TEST_CASE("promise 6: a peer that is cut off for 3 s, at whatever moment, loses nothing") {
  for (int phase = 0; phase < 20; ++phase) {
    test::NodePair pair;
    pair.world.network->set_link({.latency = 1ms});
    const Node c = pair.world.join("c");
    int ran = 0;
    c.expose("count", [&ran] { ++ran; });
    std::size_t failed = 0;
    std::size_t done = 0;
    const auto call_for = [&](Duration duration) {
      for (const Duration end = pair.world.time() + duration; pair.world.time() < end;) {
        pair.b.call<void()>("c", "count").then([&](const Result<void>& result) {
          ++(result ? done : failed);
        });
        pair.world.run_for(20ms);
      }
    };
    call_for(10s + phase * 50ms);
    pair.world.network->isolate("c");
    call_for(3s);
    pair.world.network->rejoin("c");
    call_for(1s);
    pair.world.run_for(1s);
    CHECK(failed == 0);
    CHECK(done == static_cast<std::size_t>(ran));
    CHECK_FALSE(pair.world.log.contain("is lost"));
  }
}

TEST_CASE(
    "promise 6: a node that stood still for too long calls its peers again as soon as it has given "
    "up what they have forgotten") {
  for_each_seed(1, 200, [](std::uint64_t seed) {
    SimulatedWorld world(seed);
    NodeOptions quiet;
    quiet.logging.level = LogLevel::off;
    const Node root(world.options("root", quiet));
    const Node peer(world.options("peer", quiet));
    const Node node(world.options("node", quiet));
    peer.expose("add", [](int a, int b) { return a + b; });
    node.expose("add", [](int a, int b) { return a + b; });
    // The peer makes the connection, so that the node cannot make it anew.
    REQUIRE(peer.call<int(int, int)>("node", "add", 1, 2).get() == 3);
    world.pause("node");
    world.run_for(8s);
    world.resume("node");
    const auto began = world.time();
    std::vector<Future<int>> calls;
    while (world.time() < began + 6s) {
      calls.push_back(node.call<int(int, int)>("peer", "add", 1, 2));
      world.run_for(50ms);
    }
    const auto in_time = node.call<int(int, int)>("peer", "add", 1, 2);
    world.run_for(10ms);
    CHECK(in_time.ready());
    for (const auto& call : calls)
      CHECK(call.ready());
  });
}

TEST_CASE("promise 6: whoever made the connection, a killed peer is known to both at once") {
  for (const bool called_back : {false, true}) {
    for (const char* killed : {"b", "c"}) {
      test::NodePair pair;
      const Node c = pair.world.join("c");
      std::vector<Promise<int>> never;
      const auto wait = [&never] { return never.emplace_back().get_future(); };
      pair.b.expose("wait", wait);
      c.expose("wait", wait);
      const auto there = pair.b.call<int()>("c", "wait");  // b makes the connection
      pair.world.run_for(called_back ? 10ms : 0ms);
      const auto back = c.call<int()>("b", "wait");
      pair.world.run_for(2500ms);
      REQUIRE(never.size() == 2);
      pair.world.kill(killed);
      pair.world.run_for(200ms);
      const bool of_c = std::string(killed) == "c";
      const auto& ended = of_c ? there : back;
      REQUIRE(ended.ready());
      const Node& left = of_c ? pair.b : c;
      CHECK(info_of(left, killed).state == PeerState::lost);
      CHECK(info_of(pair.a, killed).state == PeerState::lost);
    }
  }
}

}  // namespace dead_peer_test
}  // namespace batchrpc
