#include "node/group.hpp"

#include <catch2/catch.hpp>

#include "batchrpc/batchrpc.hpp"
#include "node/virtual_world.hpp"

namespace groups {
int add(int a, int b) { return a + b; }
}  // namespace groups

namespace batchrpc {
namespace {

using namespace std::chrono_literals;
using test::outcome;
using test::VirtualWorld;

std::vector<std::string> names_of(const Node& node) {
  std::vector<std::string> names;
  for (const PeerInfo& peer : node.peers())
    names.push_back(peer.name);
  return names;
}

TEST_CASE("a fixed world starts when all of its nodes have joined, in any order") {
  VirtualWorld world;
  const auto options = [&](int rank) {
    NodeOptions node = world.options("n" + std::to_string(rank));
    node.rank = rank;
    node.world_size = 4;
    return node;
  };
  auto three = Node::start(options(3));
  auto one = Node::start(options(1));
  world.run_for(2s);
  CHECK_FALSE(three.ready());
  auto root = Node::start(options(0));
  world.run_for(2s);
  CHECK_FALSE(root.ready());
  auto two = Node::start(options(2));
  std::vector<Node> nodes;
  for (auto* future : {&root, &one, &two, &three})
    nodes.push_back(std::move(*future).get());
  for (const Node& node : nodes) {
    CHECK(node.world_size() == 4);
    CHECK(node.peers().size() == 3);
    node.expose<&groups::add>();
  }
  for (int from = 0; from < 4; ++from) {
    for (int to = 0; to < 4; ++to)
      CHECK(nodes[static_cast<std::size_t>(from)].call<&groups::add>(to, from, to).get() ==
            from + to);
  }
}

TEST_CASE("a join that lacks peers at its time-out names the missing ranks, to all who wait") {
  VirtualWorld world;
  const auto options = [&](int rank) {
    NodeOptions node = world.options("n" + std::to_string(rank));
    node.rank = rank;
    node.world_size = 6;
    node.join_timeout = 10s;
    return node;
  };
  auto root = Node::start(options(0));
  auto two = Node::start(options(2));
  auto four = Node::start(options(4));
  world.run_for(30s);
  for (auto* future : {&root, &two, &four}) {
    REQUIRE(future->ready());
    const auto result = outcome(std::move(*future));
    REQUIRE_FALSE(result);
    CHECK(result.code() == ErrorCode::join_failed);
    CHECK_THAT(result.message(), Catch::Contains("ranks 1, 3, 5 of a world of 6") &&
                                     Catch::Contains("10 s") &&
                                     Catch::Contains("NodeOptions::join_timeout"));
  }
}

TEST_CASE("one missing rank is named as one, and many are counted") {
  VirtualWorld world;
  NodeOptions options = world.options("root");
  options.world_size = 2;
  options.join_timeout = 1s;
  CHECK_THAT(outcome(Node::start(options)).message(), Catch::StartsWith("rank 1 of a world of 2"));
  options.world_size = 100;
  CHECK_THAT(outcome(Node::start(options)).message(),
             Catch::Contains("ranks 1, 2, 3") && Catch::Contains("20 and 79 more"));
}

TEST_CASE("a node whose root is not there waits for it, and says so at its time-out") {
  VirtualWorld world;
  NodeOptions options = world.joining("early");
  options.join_timeout = 3s;
  const TimePoint start = world.loop->now();
  const auto result = outcome(Node::start(options));
  CHECK(world.loop->now() - start == 3s);
  CHECK(result.code() == ErrorCode::join_failed);
  CHECK_THAT(result.message(), Catch::Contains("inproc://world") && Catch::Contains("3 s") &&
                                   Catch::Contains("rank 0"));
  auto early = Node::start(world.joining("early"));
  world.run_for(10s);
  const Node root = world.root();
  CHECK(std::move(early).get().rank() == 1);
}

TEST_CASE("the root numbers nodes that have no rank of their own") {
  VirtualWorld world;
  const Node root = world.root();
  const Node a = world.join("a");
  NodeOptions fixed = world.joining("fixed");
  fixed.rank = 2;
  const Node third{fixed};
  const Node b = world.join("b");
  CHECK(a.rank() == 1);
  CHECK(third.rank() == 2);
  CHECK(b.rank() == 3);
  for (const PeerInfo& peer : root.peers()) {
    if (peer.name == "b") CHECK(peer.rank == 3);
  }
}

TEST_CASE("a second node of a taken name is refused and told who holds it") {
  VirtualWorld world;
  const Node root = world.root();
  const Node holder = world.join("worker");
  const auto second = outcome(Node::start(world.joining("worker")));
  REQUIRE_FALSE(second);
  CHECK(second.code() == ErrorCode::join_failed);
  CHECK_THAT(second.message(), Catch::Contains("the name 'worker' is taken by a node of rank 1") &&
                                   Catch::Contains("inproc") &&
                                   Catch::Contains("NodeOptions::name"));
  const auto as_root = outcome(Node::start(world.joining("root")));
  CHECK_THAT(as_root.message(), Catch::Contains("the name 'root' is taken by the node of rank 0"));
  // The holder is as before.
  root.expose<&groups::add>();
  CHECK(holder.call<&groups::add>("root", 1, 2).get() == 3);
  CHECK(names_of(root) == std::vector<std::string>{"worker"});
}

TEST_CASE("a second node of rank 0 at the address of the first is told how to join it") {
  VirtualWorld world;
  const Node root = world.root();
  NodeOptions options = world.joining("forgot its rank");
  options.rank = 0;
  CHECK_THROWS_WITH(Node::start(options),
                    Catch::Contains("is taken") && Catch::Contains("NodeOptions::rank"));
}

TEST_CASE("a taken rank is refused and told who holds it") {
  VirtualWorld world;
  const Node root = world.root();
  const Node holder = world.join("holder");
  NodeOptions options = world.joining("second");
  options.rank = 1;
  const auto second = outcome(Node::start(options));
  CHECK(second.code() == ErrorCode::join_failed);
  CHECK_THAT(second.message(), Catch::Contains("rank 1 is taken by holder at inproc://"));
  CHECK_FALSE(test::may_have_run(second.error()));
  world.run_for(1s);
  CHECK(names_of(root) == std::vector<std::string>{"holder"});
}

// As it travels.
struct Introduction {
  std::string name;
  std::int32_t rank = -1;
  std::uint64_t incarnation = 0;
  std::string host;
  std::vector<std::string> addresses;
};
struct World {
  std::int32_t rank = -1;
  std::vector<Introduction> members;
};

TEST_CASE("a member with an address of an unknown scheme keeps nobody from joining") {
  VirtualWorld world;
  const Node root = world.root();
  const Node later = world.join("later version");
  const auto self = root.peers().at(0);
  const auto joined = later.call<World(Introduction, std::int32_t)>(
      "root", "batchrpc.join",
      Introduction{self.name, self.rank, self.incarnation, "host", {"shm://somewhere"}}, 0);
  CHECK(joined.get().rank == self.rank);
  const Node next = world.join("next");
  CHECK(names_of(next) == std::vector<std::string>{"later version", "root"});
  CHECK(names_of(root) == std::vector<std::string>{"later version", "next"});
}

TEST_CASE("a node joins for itself only") {
  VirtualWorld world;
  const Node root = world.root();
  const Node node = world.join("node");
  const auto result = outcome(node.call<World(Introduction, std::int32_t)>(
      "root", "batchrpc.join", Introduction{"root", 5, 1, "host", {}}, 0));
  CHECK(result.code() == ErrorCode::join_failed);
  CHECK_THAT(result.message(), Catch::Contains("a node joins for itself"));
  const Node next = world.join("next");
  CHECK(names_of(next) == std::vector<std::string>{"node", "root"});
}

TEST_CASE("a world of another size and another job are refused") {
  VirtualWorld world;
  NodeOptions root_options = world.options("root");
  root_options.job = "one";
  const Node root(root_options);
  NodeOptions size = world.joining("size");
  size.job = "one";
  size.rank = 1;
  size.world_size = 2;
  CHECK_THAT(outcome(Node::start(size)).message(),
             Catch::Contains("a world of 2") && Catch::Contains("world_size"));
  NodeOptions job = world.joining("job");
  job.job = "two";
  const auto refused = outcome(Node::start(job));
  CHECK(refused.code() == ErrorCode::join_failed);
  CHECK_THAT(refused.message(), Catch::Contains("'two'") && Catch::Contains("'one'") &&
                                    Catch::Contains("NodeOptions::job"));
  CHECK(root.peers().empty());
}

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
  a.expose<&groups::add>();
  CHECK(c.call<&groups::add>("a", 1, 2).get() == 3);
}

TEST_CASE("a node that left can come back under its name and rank") {
  VirtualWorld world;
  const Node root = world.root();
  const Node a = world.join("a");
  for (int round = 0; round < 5; ++round) {
    const Node b = world.join("b");
    CHECK(b.rank() == 2);
    b.expose<&groups::add>();
    CHECK(a.wait_for_peer("b").get().rank == 2);
    CHECK(a.call<&groups::add>("b", round, 1).get() == round + 1);
    CHECK(root.call<&groups::add>("b", round, 1).get() == round + 1);
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
  late.expose<&groups::add>();
  CHECK(root.call<&groups::add>("late", 1, 2).get() == 3);
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
  const auto call = root.call_with<int()>({.timeout = Duration::max()}, "root", "late");
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
  std::uint64_t number = 0;
  number = root.on_membership([&](const MembershipChange& change) {
    ++calls;
    CHECK(root.peers().size() >= 1);  // no lock is held
    if (change.joined) (void)root.call<int()>(change.peer.name, "nothing there");
    root.forget_membership_handler(number);
  });
  root.on_membership([](const MembershipChange& /*change*/) { throw 42; });
  const Node a = world.join("a");
  const Node b = world.join("b");
  world.run_for(1s);
  CHECK(calls == 1);
  CHECK(world.log.contain("a handler of membership changes threw"));
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
  again.expose<&groups::add>();
  CHECK(root.call<&groups::add>("one", 1, 2).get() == 3);
}

TEST_CASE("an address that is taken is refused with a message that says what to do") {
  VirtualWorld world;
  const Node root = world.root();
  try {
    const Node second = world.root("second");
    FAIL("two roots listen at one address");
  } catch (const JoinFailed& error) {
    CHECK_THAT(error.what(), Catch::Contains("inproc://world"));
  }
}

TEST_CASE("calls that come before their function is exposed wait for it, for a while") {
  VirtualWorld world;
  const Node root = world.root();
  NodeOptions options = world.joining("slow");
  options.expose_within = 5s;
  const Node slow(options);
  const TimePoint start = world.loop->now();
  auto first = root.call<&groups::add>("slow", 1, 2);
  auto other = root.call<int()>("slow", "never exposed");
  root.notify<&groups::add>("slow", 1, 2);
  auto wrong = root.call<int(int)>("slow", "groups::add", 1);
  world.run_for(2s);
  CHECK_FALSE(first.ready());
  slow.expose<&groups::add>();
  CHECK(first.get() == 3);
  CHECK(world.loop->now() - start == 2s);
  CHECK(outcome(std::move(wrong)).code() == ErrorCode::bad_signature);
  CHECK_FALSE(other.ready());
  const auto missing = outcome(std::move(other));
  CHECK(world.loop->now() - start == 5s);
  CHECK(missing.code() == ErrorCode::not_found);
  CHECK_FALSE(test::may_have_run(missing.error()));
  const auto late = outcome(root.call<int()>("slow", "never exposed"));
  CHECK(world.loop->now() - start == 5s);
  CHECK(late.code() == ErrorCode::not_found);
}

TEST_CASE("calls that wait for their function when the node ends have not run") {
  VirtualWorld world;
  const Node root = world.root();
  NodeOptions options = world.joining("slow");
  options.expose_within = 5s;
  Node slow(options);
  auto call = root.call<&groups::add>("slow", 1, 2);
  world.run_for(1s);
  slow.shutdown(1s);
  world.run_for(1s);
  REQUIRE(call.ready());
  const auto result = outcome(std::move(call));
  REQUIRE_FALSE(result);
  INFO(result.message());
  CHECK_FALSE(test::may_have_run(result.error()));
}

}  // namespace
}  // namespace batchrpc
