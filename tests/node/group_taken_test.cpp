#include <catch2/catch.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/virtual_world.hpp"

namespace groups_taken {
int add(int a, int b) { return a + b; }
}  // namespace groups_taken

// Nodes that want the name or rank of another one.
namespace batchrpc {
namespace group_taken_test {

using namespace std::chrono_literals;
using test::names_of;
using test::outcome;
using test::VirtualWorld;

/// A world of three nodes.
struct FixedWorld : VirtualWorld {
  [[nodiscard]] NodeOptions options(const std::string& name, int rank) const {
    NodeOptions node = VirtualWorld::options(name);
    node.rank = rank;
    node.world_size = 3;
    return node;
  }
  [[nodiscard]] Future<Node> start(const std::string& name, int rank) const {
    return Node::start(options(name, rank));
  }
};

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
  root.expose<&groups_taken::add>();
  CHECK(holder.call<&groups_taken::add>("root", 1, 2).get() == 3);
  CHECK(names_of(root) == std::vector<std::string>{"worker"});
}

TEST_CASE("who takes the name or rank of a node that is about to end gets it when that has ended") {
  VirtualWorld world;
  const Node root = world.root();
  std::optional<Node> holder = world.join("worker");
  NodeOptions options = world.joining("worker");
  SECTION("the name") {}
  SECTION("the rank") {
    options.name = "another";
    options.rank = holder->rank();
  }
  auto second = Node::start(options);
  world.run_for(500ms);
  CHECK_FALSE(second.ready());
  CHECK(names_of(root) == std::vector<std::string>{"worker"});
  holder.reset();
  world.run_for(100ms);
  REQUIRE(second.ready());
  const Node successor = std::move(second).get();
  CHECK(successor.rank() == 1);
  root.expose<&groups_taken::add>();
  CHECK(successor.call<&groups_taken::add>("root", 1, 2).get() == 3);
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

TEST_CASE("a fixed world in which two nodes want one name or rank fails for all, and says why") {
  const FixedWorld world;
  std::string why;
  std::string who = "another node";
  NodeOptions wrong;
  SECTION("a worker's name") {
    wrong = world.options("one", 2);
    why = "the name 'one' is taken by a node of rank 1 at ";
  }
  SECTION("the root's name") {
    wrong = world.options("root", 2);
    why = "the name 'root' is taken by the node of rank 0; choose another NodeOptions::name";
  }
  SECTION("a worker's rank") {
    wrong = world.options("two", 1);
    why = "rank 1 is taken by one at ";
    who = "'two'";
  }
  auto root = world.start("root", 0);
  auto one = world.start("one", 1);
  world.run_for(100ms);
  auto two = Node::start(wrong);
  world.run_for(4s);
  for (auto* future : {&root, &one, &two}) {
    REQUIRE(future->ready());
    const auto result = outcome(std::move(*future));
    CHECK(result.code() == ErrorCode::join_failed);
    CHECK_THAT(result.message(), Catch::Contains(why));
    if (future != &two) {
      CHECK_THAT(result.message(), Catch::Contains("the world of 3 cannot become complete: " + who +
                                                   " wants to join, but "));
    }
  }
}

TEST_CASE("in a fixed world, who takes the place of a node that was killed gets it") {
  const FixedWorld world;
  auto root = world.start("root", 0);
  auto old = world.start("one", 1);
  world.run_for(100ms);
  std::optional<Future<Node>> other;
  if (GENERATE(false, true)) {  // long ago another node wanted the place, for a moment
    other = world.start("other", 1);
    world.run_for(500ms);
    world.kill("other");
    world.run_for(20s);
  }
  world.run_for(GENERATE(0ms, 450ms, 800ms));  // somewhere between two pings
  world.kill("one");
  world.network->rejoin("one");
  auto one = world.start("one", 1);
  auto two = world.start("two", 2);
  world.run_for(10s);
  for (auto* future : {&root, &one, &two}) {
    REQUIRE(future->ready());
    const auto result = outcome(std::move(*future));
    INFO(result.message());
    CHECK(result);
  }
  world.run_for(70s);  // until those that were killed give up
}

}  // namespace group_taken_test
}  // namespace batchrpc
