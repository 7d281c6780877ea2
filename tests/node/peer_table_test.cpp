#include <catch2/catch.hpp>

#include "batchrpc/batchrpc.hpp"
#include "node/node_core.hpp"
#include "node/virtual_world.hpp"

// When a peer is gone: the one timeline for everything. Each node is a host of the in-process
// network, and time is virtual, so that the times below are exact.

namespace losses {
int add(int a, int b) { return a + b; }
}  // namespace losses

namespace batchrpc {
namespace peer_table_test {

using namespace std::chrono_literals;
using test::may_have_run;
using test::outcome;

struct Trio {
  test::VirtualWorld world;
  Node root = world.root();
  Node a = world.join("a");
  Node b = world.join("b");
  std::vector<Promise<int>> never;
  int ran = 0;

  Trio() { expose(b); }
  void expose(const Node& node) {
    node.expose<&losses::add>();
    node.expose("never", [this] {
      ++ran;
      never.emplace_back();
      return never.back().get_future();
    });
  }
  [[nodiscard]] PeerState state_of(const Node& node, std::string_view name) const {
    for (const PeerInfo& peer : node.peers()) {
      if (peer.name == name) return peer.state;
    }
    throw std::logic_error("no such peer");
  }
};

/// What a future ended in, and when.
template <class T>
struct Ending {
  explicit Ending(const test::VirtualWorld& world, Future<T> future) {
    std::move(future).then([seen = seen_, &world](const Result<T>& result) {
      seen->result = result;
      seen->after = world.time();
    });
  }
  [[nodiscard]] bool over() const { return seen_->result.has_value(); }
  [[nodiscard]] ErrorCode code() const { return seen_->result->code(); }
  [[nodiscard]] bool ran() const { return may_have_run(seen_->result->error()); }
  [[nodiscard]] std::string message() const { return seen_->result->message(); }
  [[nodiscard]] Duration time() const { return seen_->after; }

 private:
  struct Seen {
    std::optional<Result<T>> result;
    Duration after{};
  };
  std::shared_ptr<Seen> seen_ = std::make_shared<Seen>();
};

TEST_CASE("a session that ends with its peer is counted once") {
  Trio nodes;
  nodes.a.call<&losses::add>("b", 1, 2).get();
  nodes.world.kill("b");
  nodes.world.run_for(20s);
  CHECK(nodes.state_of(nodes.a, "b") == PeerState::lost);
  CHECK(detail::NodeAccess::core(nodes.a)->peers().standing("b").sessions_ended == 1);
  CHECK(detail::NodeAccess::core(nodes.root)->peers().standing("b").sessions_ended == 1);
}

TEST_CASE("promise 6: a call under way to a process that is killed ends at once as PeerLost") {
  Trio trio;
  Ending call(trio.world, trio.a.call<int()>("b", "never"));
  trio.world.run_for(1s);
  REQUIRE(trio.ran == 1);
  const Duration killed = trio.world.time();
  trio.world.kill("b");
  trio.world.run_for(1s);
  REQUIRE(call.over());
  CHECK(call.time() == killed);
  CHECK(call.code() == ErrorCode::peer_lost);
  CHECK(call.ran());
  CHECK_THAT(call.message(), Catch::Contains("b is lost") && Catch::Contains("'never'"));
  CHECK(trio.state_of(trio.a, "b") == PeerState::lost);
}

TEST_CASE("a peer that is killed is lost, though there were two connections to it") {
  Trio trio;
  trio.a.expose<&losses::add>();
  auto there = trio.a.call<&losses::add>("b", 1, 2);  // both connect at the same moment
  auto back = trio.b.call<&losses::add>("a", 1, 2);
  CHECK(there.get() + back.get() == 6);
  const Ending call(trio.world, trio.a.call<int()>("b", "never"));
  trio.world.run_for(10ms);
  REQUIRE(trio.ran == 1);
  trio.world.kill("b");
  trio.world.run_for(200ms);
  REQUIRE(call.over());
  CHECK(call.code() == ErrorCode::peer_lost);
}

TEST_CASE("a call to a process that was killed before fails at once as NotSent") {
  Trio trio;
  trio.a.call<&losses::add>("b", 1, 2).get();
  trio.world.kill("b");
  trio.world.run_for(1s);
  const Duration called = trio.world.time();
  const auto result = outcome(trio.a.call<&losses::add>("b", 1, 2));
  CHECK(trio.world.time() == called);
  CHECK(result.code() == ErrorCode::not_sent);
  CHECK_FALSE(may_have_run(result.error()));
}

TEST_CASE(
    "a call to a peer of the group that nobody has connected to, and that is dead, is NotSent") {
  Trio trio;
  trio.world.kill("b");
  const auto result = outcome(trio.a.call<&losses::add>("b", 1, 2));
  CHECK(result.code() == ErrorCode::not_sent);
  CHECK_FALSE(may_have_run(result.error()));
}

TEST_CASE("a call under way to a peer that falls silent ends as PeerLost after 5 s") {
  Trio trio;
  Ending call(trio.world, trio.a.call<int()>("b", "never"));
  trio.world.run_for(300ms);
  const Duration silent = trio.world.time();
  trio.world.network->isolate("b");
  trio.world.run_for(20s);
  REQUIRE(call.over());
  CHECK(call.time() - silent >= 5s);
  CHECK(call.time() - silent <= 6s);
  CHECK(call.code() == ErrorCode::peer_lost);
  CHECK(call.ran());
  CHECK_THAT(call.message(), Catch::Contains("silent"));
}

TEST_CASE("promise 6: whenever a peer falls silent, its calls end between 5 and 6 s later") {
  for (int phase = 0; phase < 20; ++phase) {
    Trio trio;
    Ending call(trio.world, trio.a.call<int()>("b", "never"));
    trio.world.run_for(10s + phase * 100ms);
    const Duration silent = trio.world.time();
    trio.world.network->isolate("b");
    trio.world.run_for(10s);
    REQUIRE(call.over());
    INFO("silent from " << silent / 1ms << " ms on, lost at " << call.time() / 1ms);
    CHECK(call.time() - silent >= 5s);
    CHECK(call.time() - silent <= 6s);
  }
}

TEST_CASE("a call to a peer that cannot be reached ends as NotSent after 5 s") {
  Trio trio;
  trio.world.network->isolate("b");
  const Duration called = trio.world.time();
  Ending call(trio.world, trio.a.call<&losses::add>("b", 1, 2));
  trio.world.run_for(20s);
  REQUIRE(call.over());
  CHECK(call.time() - called >= 4900ms);
  CHECK(call.time() - called <= 6s);
  CHECK(call.code() == ErrorCode::not_sent);
  CHECK_FALSE(call.ran());
}

TEST_CASE("a peer that is cut off for less than 5 s is not lost, and its calls go on") {
  Trio trio;
  Ending call(trio.world, trio.a.call<int()>("b", "never"));
  trio.world.run_for(10s);
  trio.world.network->isolate("b");
  Ending during(trio.world, trio.a.call<&losses::add>("b", 1, 2));
  trio.world.run_for(4900ms);
  trio.world.network->rejoin("b");
  trio.world.run_for(1s);
  CHECK_FALSE(call.over());
  REQUIRE(during.over());
  trio.never[0].set_value(1);
  trio.world.run_for(1s);
  REQUIRE(call.over());
  CHECK(trio.state_of(trio.a, "b") == PeerState::connected);
}

TEST_CASE("a peer that was lost is called again, once it can be reached") {
  Trio trio;
  trio.a.call<&losses::add>("b", 1, 2).get();
  trio.world.network->isolate("b");
  trio.world.run_for(10s);
  CHECK(trio.state_of(trio.a, "b") == PeerState::lost);
  trio.world.network->rejoin("b");
  trio.world.run_for(1s);
  CHECK(trio.a.call<&losses::add>("b", 1, 2).get() == 3);
  CHECK(trio.state_of(trio.a, "b") == PeerState::connected);
  CHECK(trio.root.call<int(int, int)>("b", "losses::add", 2, 2).get() == 4);
}

TEST_CASE(
    "calls queued for a peer that is lost while it is connected to are NotSent, all of them") {
  Trio trio;
  trio.world.network->partition("a", "b");
  std::vector<Ending<int>> calls;
  for (int i = 0; i < 100; ++i)
    calls.emplace_back(trio.world, trio.a.call<&losses::add>("b", i, 1));
  trio.world.run_for(10s);
  for (const auto& call : calls) {
    REQUIRE(call.over());
    CHECK(call.code() == ErrorCode::not_sent);
  }
}

TEST_CASE("of many calls to a peer that dies, those that were not written are NotSent") {
  Trio trio;
  trio.b.expose("take", [](const Bytes& bytes) { return static_cast<int>(bytes.size()); });
  // The link takes no more than 64 KiB at a time, so that the last calls are still queued here.
  trio.world.network->set_link("a", "b", {.latency = 1ms, .capacity = 64 * 1024});
  trio.a.call<&losses::add>("b", 1, 2).get();
  trio.world.network->partition("a", "b");
  std::vector<Ending<int>> calls;
  for (int i = 0; i < 100; ++i) {
    calls.emplace_back(trio.world, trio.a.call<int(Bytes)>("b", "take", Bytes::allocate(8 * 1024)));
    trio.world.run_for(1ms);
  }
  trio.world.run_for(10s);
  int lost = 0;
  int not_sent = 0;
  for (const auto& call : calls) {
    REQUIRE(call.over());
    if (call.code() == ErrorCode::peer_lost) {
      ++lost;
      CHECK(call.ran());
      CHECK(not_sent == 0);  // in order
    } else {
      CHECK(call.code() == ErrorCode::not_sent);
      ++not_sent;
    }
  }
  CHECK(lost >= 1);
  CHECK(not_sent >= 80);
}

TEST_CASE("losses and joins are told to the others, with a reason") {
  Trio trio;
  std::vector<std::string> seen;
  const auto note = [&seen, &trio](const MembershipChange& change) {
    seen.push_back((change.joined ? "+" : "-") + change.peer.name);
    if (!change.joined) CHECK_FALSE(change.reason.empty());
    (void)trio;
  };
  trio.a.on_membership(note);
  trio.world.kill("b");
  trio.world.run_for(1s);
  CHECK(seen == std::vector<std::string>{"-b"});
  Node c = trio.world.join("c");
  trio.world.run_for(1s);
  CHECK(seen == std::vector<std::string>{"-b", "+c"});
  c.shutdown(1s);
  trio.world.run_for(1s);
  CHECK(seen == std::vector<std::string>{"-b", "+c", "-c"});
}

TEST_CASE("a peer that nobody calls is noticed to be gone all the same, through the root") {
  Trio trio;
  bool lost = false;
  trio.a.on_membership([&lost](const MembershipChange& change) {
    lost = lost || (!change.joined && change.peer.name == "b");
  });
  trio.world.run_for(10s);
  const Duration silent = trio.world.time();
  trio.world.network->isolate("b");
  while (!lost && trio.world.time() - silent < 20s)
    trio.world.run_for(100ms);
  CHECK(lost);
  CHECK(trio.world.time() - silent <= 6100ms);
  CHECK(trio.state_of(trio.a, "b") == PeerState::lost);
}

TEST_CASE("a peer that was cut off and comes back is told of again, and newcomers learn of it") {
  Trio trio;
  std::vector<std::string> seen;
  trio.root.on_membership([&seen](const MembershipChange& change) {
    seen.push_back((change.joined ? "+" : "-") + change.peer.name);
  });
  trio.world.network->isolate("b");
  trio.world.run_for(10s);
  CHECK(seen == std::vector<std::string>{"-b"});
  trio.world.network->rejoin("b");
  trio.expose(trio.root);
  CHECK(trio.b.call<&losses::add>("root", 1, 2).get() == 3);
  trio.world.run_for(1s);
  CHECK(seen == std::vector<std::string>{"-b", "+b"});
  CHECK(trio.state_of(trio.a, "b") != PeerState::lost);
  const Node late = trio.world.join("late");
  CHECK(late.call<&losses::add>("b", 2, 2).get() == 4);
}

TEST_CASE("a peer that was restarted takes its name again, and calls to the old one have ended") {
  Trio trio;
  Ending old(trio.world, trio.a.call<int()>("b", "never"));
  trio.world.run_for(1s);
  trio.world.kill("b");
  { const Node former = std::move(trio.b); }
  trio.world.network->rejoin("b");
  const Node again = trio.world.join("b");
  trio.expose(again);
  trio.world.run_for(1s);
  REQUIRE(old.over());
  CHECK(old.code() == ErrorCode::peer_lost);
  CHECK(trio.a.call<&losses::add>("b", 1, 2).get() == 3);
}

TEST_CASE("the death of a peer while a large payload is on its way ends the call") {
  for (const bool of_reply : {false, true}) {
    Trio trio;
    trio.world.network->set_link("a", "b", {.latency = 1ms, .capacity = 64 * 1024});
    trio.b.expose("echo", [](Bytes bytes) { return bytes; });
    trio.b.expose("make", [](std::uint64_t size) { return Bytes::allocate(size); });
    Ending call(trio.world,
                of_reply ? trio.a.call<Bytes(std::uint64_t)>("b", "make", std::uint64_t{8} << 20)
                         : trio.a.call<Bytes(Bytes)>("b", "echo", Bytes::allocate(8 << 20)));
    trio.world.run_for(20ms);
    REQUIRE_FALSE(call.over());
    trio.world.network->kill("b");
    trio.world.run_for(1ms);
    trio.world.network->isolate("b");
    trio.world.run_for(1s);
    REQUIRE(call.over());
    CHECK(call.code() == ErrorCode::peer_lost);
  }
}

TEST_CASE("many nodes whose root dies keep calling each other") {
  Trio trio;
  trio.world.kill("root");
  trio.world.run_for(10s);
  CHECK(trio.a.call<&losses::add>("b", 1, 2).get() == 3);
  CHECK(outcome(trio.a.call<&losses::add>("root", 1, 2)).code() == ErrorCode::not_sent);
}

TEST_CASE("an unreachable peer is tried again with growing pauses, not in a hurry") {
  Trio trio;
  // Refused half way: the name exists, but the connection breaks before the hello is over.
  trio.world.network->set_link("a", "b", {.break_after = 10});
  Ending call(trio.world, trio.a.call<&losses::add>("b", 1, 2));
  const Duration start = trio.world.time();
  trio.world.run_for(2s);
  CHECK_FALSE(call.over());
  trio.world.network->set_link("a", "b", {});
  trio.world.run_for(4s);
  REQUIRE(call.over());
  CHECK(call.time() - start < 6s);
  CHECK(trio.a.call<&losses::add>("b", 1, 2).get() == 3);
}

TEST_CASE("runs with one seed are the same, to the nanosecond") {
  const auto run = [] {
    Trio trio;
    std::vector<std::int64_t> times;
    trio.world.network->set_link({.latency = 1ms, .jitter = 3ms});
    for (int i = 0; i < 20; ++i) {
      trio.a.call<&losses::add>("b", i, i).get();
      times.push_back(trio.world.time() / 1ns);
    }
    trio.world.network->isolate("b");
    Ending call(trio.world, trio.a.call<&losses::add>("b", 1, 1));
    trio.world.run_for(10s);
    times.push_back(call.time() / 1ns);
    return times;
  };
  CHECK(run() == run());
}

}  // namespace peer_table_test
}  // namespace batchrpc
