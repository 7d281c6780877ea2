// Who comes and goes in a group that has begun.
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <string_view>

#include "batchrpc/batchrpc.hpp"
#include "node/virtual_world.hpp"

namespace membership {
int add(int a, int b) { return a + b; }
}  // namespace membership

namespace batchrpc {
namespace membership_test {

using namespace std::chrono_literals;
using test::names_of;
using test::outcome;
using test::VirtualWorld;

TEST_CASE("in an open world nodes come and go at any time, and all know who is there") {
  VirtualWorld world;
  const Node root = world.root();
  Node a = world.join("a");
  {
    const Node b = world.join("b");
    world.run_for(1s);
    CHECK(names_of(a) == std::vector<std::string>{"b", "root"});
    CHECK(names_of(b) == std::vector<std::string>{"a", "root"});
  }
  world.run_for(1s);
  const auto peers = a.peers();
  REQUIRE(peers.size() == 2);
  CHECK(peers[0].name == "b");
  CHECK(peers[0].state == PeerState::lost);
  const Node c = world.join("c");
  world.run_for(1s);
  CHECK(names_of(c) == std::vector<std::string>{"a", "root"});
  a.expose<&membership::add>();
  CHECK(c.call<&membership::add>("a", 1, 2).get() == 3);
}

TEST_CASE("a node that left can come back under its name and rank") {
  VirtualWorld world;
  const Node root = world.root();
  const Node a = world.join("a");
  for (int round = 0; round < 5; ++round) {
    const Node b = world.join("b");
    CHECK(b.rank() == 2);
    b.expose<&membership::add>();
    CHECK(a.wait_for_peer("b").get().rank == 2);
    CHECK(a.call<&membership::add>("b", round, 1).get() == round + 1);
    CHECK(root.call<&membership::add>("b", round, 1).get() == round + 1);
  }
}

TEST_CASE("wait_for_peer is ready when the peer joins, at once when it is there") {
  VirtualWorld world;
  const Node root = world.root();
  auto waiting = root.wait_for_peer("late");
  world.run_for(10s);
  CHECK_FALSE(waiting.ready());
  const Node late = world.join("late");
  const PeerInfo info = std::move(waiting).get();
  CHECK(info.name == "late");
  CHECK(info.rank == 1);
  CHECK(root.wait_for_peer("late").ready());
  late.expose<&membership::add>();
  CHECK(root.call<&membership::add>("late", 1, 2).get() == 3);
}

TEST_CASE("a node is there for itself") {
  VirtualWorld world;
  const Node root = world.root("root");
  const Node a = world.join("a");
  auto own = a.wait_for_peer("a");
  REQUIRE(own.ready());
  CHECK(own.get().name == "a");
  CHECK(own.get().rank == a.rank());
  CHECK(own.get().addresses.front() == a.address());
  a.expose<&membership::add>();
  CHECK(a.call<&membership::add>(own.get(), 1, 2).get() == 3);
}

TEST_CASE("waits without end have none") {
  VirtualWorld world;
  NodeOptions options = world.options("root");
  options.expose_within = Duration::max();
  const Node root(options);
  auto waiting = root.wait_for_peer("late", Duration::max());
  NodeOptions patient = world.joining("patient");
  patient.join = "inproc://elsewhere";
  patient.join_timeout = Duration::max();
  auto joining = Node::start(patient);
  const auto call = root.peer("root").with({.timeout = Duration::max()}).call<int()>("late");
  world.run_for(10min);
  CHECK_FALSE(waiting.ready());
  CHECK_FALSE(joining.ready());
  CHECK_FALSE(call.ready());
  const Node late = world.join("late");
  CHECK(waiting.get().name == "late");
  NodeOptions elsewhere = world.options("elsewhere");
  elsewhere.join = "inproc://elsewhere";
  const Node other(elsewhere);
  CHECK(joining.get().peers().size() == 1);
}

TEST_CASE("wait_for_peer times out exactly, and does not wait for a peer that is lost") {
  VirtualWorld world;
  const Node root = world.root();
  const TimePoint start = world.loop->now();
  const auto result = outcome(root.wait_for_peer("nobody", 2500ms));
  CHECK(world.loop->now() - start == 2500ms);
  CHECK(result.code() == ErrorCode::timed_out);
  CHECK_THAT(result.message(), Catch::Contains("'nobody'") && Catch::Contains("2500 ms"));
  { const Node gone = world.join("gone"); }
  world.run_for(1s);
  CHECK(outcome(root.wait_for_peer("gone", 1s)).code() == ErrorCode::timed_out);
}

PeerState state_of(const Node& node, std::string_view name) {
  for (const PeerInfo& peer : node.peers()) {
    if (peer.name == name) return peer.state;
  }
  throw std::logic_error("no such peer");
}

TEST_CASE("a peer that this node alone has lost is found again by who waits for it") {
  VirtualWorld world;
  const Node root = world.root();
  const Node b = world.join("b");
  const Node c = world.join("c");
  c.expose("f", [] { return 1; });
  CHECK(b.call<int()>("c", "f").get() == 1);
  world.network->partition("b", "c");
  world.run_for(10s);
  REQUIRE(state_of(b, "c") == PeerState::lost);
  REQUIRE(state_of(root, "c") == PeerState::connected);
  auto waiting = b.wait_for_peer("c", 60s);
  world.run_for(20s);
  CHECK_FALSE(waiting.ready());
  CHECK(state_of(b, "c") == PeerState::lost);
  world.network->heal("b", "c");
  world.run_for(13s);
  REQUIRE(waiting.ready());
  CHECK(waiting.get().name == "c");
  CHECK(b.call<int()>("c", "f").get() == 1);
}

TEST_CASE("a peer that the group has lost is not sought by who waits for it") {
  VirtualWorld world;
  std::map<std::string, int> tries;
  const auto counting = [&](NodeOptions options) {
    options.logging.sink = [&tries, name = options.name](LogLevel /*level*/,
                                                         std::string_view line) {
      if (line.find("connecting to c") != std::string_view::npos) ++tries[name];
    };
    return options;
  };
  const Node root(counting(world.options("root")));
  const Node c(counting(world.joining("c")));
  NodeOptions patient = world.joining("b");
  patient.liveness.dead_after = 8s;  // so that the group's news come before its own
  const Node b(counting(patient));
  c.expose("f", [] { return 1; });
  CHECK(b.call<int()>("c", "f").get() == 1);
  CHECK(root.call<int()>("c", "f").get() == 1);
  world.network->isolate("c");
  world.run_for(20s);
  CHECK(tries["b"] > 0);
  tries.clear();
  const auto of_root = root.wait_for_peer("c", 10min);
  const auto of_b = b.wait_for_peer("c", 10min);
  world.run_for(5min);
  CHECK(tries["root"] == 0);
  CHECK(tries["b"] == 0);
  CHECK_FALSE(of_root.ready());
  CHECK_FALSE(of_b.ready());
}

TEST_CASE("a lost peer that a call tries to reach is lost, and waited for, until it is there") {
  VirtualWorld world;
  const Node root = world.root();
  const Node a = world.join("a");
  Node former = world.join("b");
  former.expose<&membership::add>();
  CHECK(a.call<&membership::add>("b", 1, 2).get() == 3);
  world.kill("b");
  world.run_for(1s);
  REQUIRE(state_of(a, "b") == PeerState::lost);
  { const Node gone = std::move(former); }
  auto waiting = a.wait_for_peer("b");
  std::size_t tried = 0;
  for (int i = 0; i < 50; ++i) {
    const auto call = a.call<&membership::add>("b", 1, 2);
    tried += call.ready() ? 0 : 1;
    CHECK(state_of(a, "b") == PeerState::lost);
    CHECK_FALSE(waiting.ready());
    CHECK_FALSE(a.wait_for_peer("b", 1h).ready());
    world.run_for(200ms);
  }
  CHECK(tried > 0);
  world.network->rejoin("b");
  const Node again = world.join("b");
  again.expose<&membership::add>();
  const PeerInfo info = std::move(waiting).get();
  CHECK(info.state != PeerState::lost);
  CHECK(a.call<&membership::add>("b", 1, 2).get() == 3);
  CHECK(state_of(a, "b") == PeerState::connected);
}

TEST_CASE("waiting for peers leaves nothing behind, whoever has come") {
  VirtualWorld world;
  const Node root = world.root();
  const Node a = world.join("a");
  world.run_for(1s);
  const std::size_t before = world.loop->pending();
  for (int i = 0; i < 100; ++i)
    CHECK(root.wait_for_peer("a", 1h).ready());
  CHECK(world.loop->pending() <= before + 1);
}

TEST_CASE("who waits for a peer when the node ends is told ShutDown") {
  VirtualWorld world;
  Node root = world.root();
  auto waiting = root.wait_for_peer("nobody");
  root.shutdown(1s);
  REQUIRE(waiting.ready());
  CHECK(outcome(std::move(waiting)).code() == ErrorCode::shut_down);
}

TEST_CASE("a membership handler is called until it is taken back, and may do anything") {
  VirtualWorld world;
  const Node root = world.root();
  int calls = 0;
  MembershipSubscription subscription;
  subscription = root.on_membership([&](const MembershipChange& change) {
    ++calls;
    CHECK(root.peers().size() >= 1);  // no lock is held
    if (change.joined) (void)root.call<int()>(change.peer.name, "nothing there");
    subscription.cancel();
  });
  const MembershipSubscription other =
      root.on_membership([](const MembershipChange& /*change*/) { throw 42; });
  const Node a = world.join("a");
  const Node b = world.join("b");
  world.run_for(1s);
  CHECK(calls == 1);
  CHECK(world.log.contain("a handler of membership changes threw"));
  CHECK_THROWS_AS(root.on_membership(nullptr), InvalidArgument);
  MembershipSubscription of_ended;
  {
    const Node c = world.join("c");
    of_ended = c.on_membership([](const MembershipChange& /*change*/) {});
  }
  for (const MembershipSubscription& each : {other, other, of_ended, MembershipSubscription()})
    CHECK_NOTHROW(each.cancel());
}

TEST_CASE("a node that dies while others wait for the world to be complete is replaced") {
  VirtualWorld world;
  const auto options = [&](const std::string& name, int rank) {
    NodeOptions node = world.options(name);
    node.rank = rank;
    node.world_size = 3;
    return node;
  };
  auto root = Node::start(options("root", 0));
  auto one = Node::start(options("one", 1));
  world.run_for(1s);
  world.kill("one");
  world.run_for(1s);
  auto again = Node::start(options("one-again", 1));
  auto two = Node::start(options("two", 2));
  world.run_for(1s);
  REQUIRE(root.ready());
  REQUIRE(again.ready());
  REQUIRE(two.ready());
  const Node first = std::move(root).get();
  const Node second = std::move(again).get();
  const Node third = std::move(two).get();
  CHECK(names_of(third) == std::vector<std::string>{"one-again", "root"});
  world.run_for(1min);
  CHECK(one.ready());  // it has given up
}

TEST_CASE("a node with a fixed world that dies can be started again") {
  VirtualWorld world;
  const auto options = [&](const std::string& name, int rank) {
    NodeOptions node = world.options(name);
    node.rank = rank;
    node.world_size = 2;
    return node;
  };
  auto root_future = Node::start(options("root", 0));
  auto one_future = Node::start(options("one", 1));
  const Node root = std::move(root_future).get();
  {
    const Node one = std::move(one_future).get();
    world.kill("one");
    world.run_for(1s);
  }
  world.network->rejoin("one");
  const Node again{options("one", 1)};
  again.expose<&membership::add>();
  CHECK(root.call<&membership::add>("one", 1, 2).get() == 3);
}

}  // namespace membership_test
}  // namespace batchrpc
