// How a node returns that its root no longer counts as a member.
#include <catch2/catch.hpp>
#include <string>

#include "batchrpc/batchrpc.hpp"
#include "batchrpc/testing/simulated_world.hpp"
#include "node/virtual_world.hpp"
#include "peers/peer_table.hpp"

namespace rejoining {
int add(int a, int b) { return a + b; }
}  // namespace rejoining

namespace batchrpc {
namespace rejoining_test {

using namespace std::chrono_literals;
using rejoining::add;
using test::names_of;
using test::VirtualWorld;

PeerState state_of(const Node& node, const std::string& name) {
  for (const PeerInfo& peer : node.peers()) {
    if (peer.name == name) return peer.state;
  }
  throw NotFound(name);
}

TEST_CASE("a lost node whose rank another node has taken comes back with a rank of its own") {
  const VirtualWorld world;
  Node root = world.root();
  root.expose<&add>();
  Node a = world.join("a");
  a.expose<&add>();
  Node b = world.join("b");
  REQUIRE(a.rank() == 1);
  const bool calls_first = GENERATE(false, true);
  if (calls_first) CHECK(b.call<&add>("a", 1, 1).get() == 2);
  world.network->isolate("a");
  world.run_for(7s);
  CHECK(state_of(root, "a") == PeerState::lost);
  const Node c = world.join("c");
  CHECK(c.rank() == 1);
  world.network->rejoin("a");
  world.run_for(20s);
  CHECK(a.rank() == 3);
  CHECK(names_of(root) == std::vector<std::string>{"a", "b", "c"});
  CHECK(names_of(c) == std::vector<std::string>{"a", "b", "root"});
  CHECK(names_of(a) == std::vector<std::string>{"b", "c", "root"});
  CHECK(root.call<&add>(3, 1, 2).get() == 3);
  CHECK(b.call<&add>(3, 2, 2).get() == 4);
  CHECK(c.call<&add>("a", 3, 2).get() == 5);
  CHECK(a.call<&add>("root", 4, 2).get() == 6);
}

// Found by random programs, seeds 1173 and 1443.
TEST_CASE("a node that stood still and never noticed that it was lost joins again") {
  SimulatedWorld world(1);
  Node root(world.options("root"));
  root.expose<&add>();
  Node a(world.options("a"));
  a.expose<&add>();
  world.pause("a");
  world.run_for(7s);
  const Node b(world.options("b"));
  CHECK(b.rank() == 1);
  world.resume("a");
  world.run_for(10s);
  CHECK(a.rank() == 2);
  CHECK(root.call<&add>("a", 1, 2).get() == 3);
  CHECK(b.call<&add>("a", 1, 2).get() == 3);
  CHECK(a.call<&add>("root", 4, 2).get() == 6);
}

TEST_CASE("a lost node that chose its rank itself asks for it until it is free") {
  const VirtualWorld world;
  const Node root = world.root();
  NodeOptions chosen = world.joining("a");
  chosen.rank = 1;
  Node a(chosen);
  a.expose<&add>();
  world.network->isolate("a");
  world.run_for(7s);
  {
    const Node b = world.join("b");
    CHECK(b.rank() == 1);
    world.network->rejoin("a");
    world.run_for(20s);
    CHECK(state_of(root, "a") == PeerState::lost);
    CHECK(
        world.log.contain("this node cannot return to its group yet; asking again: rank 1 is "
                          "taken by b"));
  }
  world.run_for(20s);
  CHECK(a.rank() == 1);
  CHECK(root.call<&add>("a", 1, 2).get() == 3);
}

TEST_CASE("the dead are forgotten after their lease, and who was only cut off joins again") {
  const VirtualWorld world;
  const Node root = world.root();
  const Node other = world.join("other");
  Node a = world.join("a");
  a.expose<&add>();
  other.wait_for_peer("a").get();
  world.network->isolate("a");
  world.run_for(7s);
  constexpr std::size_t kLost = PeerTable::kRememberedDead + 20;
  for (std::size_t i = 0; i < kLost; ++i) {
    const Node gone = world.join("worker" + std::to_string(i));
  }
  world.run_for(5s);
  CHECK(root.peers().size() == kLost + 2);  // the lease has not ended
  world.run_for(60s);
  CHECK(root.peers().size() == PeerTable::kRememberedDead + 1);
  CHECK(other.peers().size() == PeerTable::kRememberedDead + 1);
  CHECK(test::outcome(root.call<&add>("a", 1, 2)).code() == ErrorCode::not_found);
  world.network->rejoin("a");
  world.run_for(20s);
  CHECK(root.call<&add>("a", 1, 2).get() == 3);
  CHECK(other.call<&add>("a", 1, 2).get() == 3);
}

TEST_CASE("the dead are forgotten while others join under their rank") {
  const VirtualWorld world;
  const Node root = world.root();
  for (int i = 0; i < 400; ++i) {
    { const Node gone = world.join("worker" + std::to_string(i)); }
    world.run_for(1s);
  }
  CHECK(root.peers().size() < PeerTable::kRememberedDead + 50);
}

}  // namespace rejoining_test
}  // namespace batchrpc
