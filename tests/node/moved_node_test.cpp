#include <catch2/catch.hpp>

#include "batchrpc/batchrpc.hpp"
#include "node/virtual_world.hpp"

namespace moving {
int add(int a, int b) { return a + b; }
}  // namespace moving

namespace batchrpc {
namespace moved_node_test {

using namespace std::chrono_literals;

using Pair = test::NodePair;

TEST_CASE("a node that was moved from says so, whatever it is asked for") {
  Pair pair;
  const Node moved = std::move(pair.a);
  Node& empty = pair.a;
  CHECK_THROWS_AS(empty.call<&moving::add>("b", 1, 2).get(), InvalidArgument);
  CHECK_THROWS_AS(empty.call<&moving::add>(1, 1, 2).get(), InvalidArgument);
  CHECK_THROWS_AS(empty.peer("b").notify<&moving::add>(1, 2), InvalidArgument);
  CHECK_THROWS_AS(empty.expose<&moving::add>(), InvalidArgument);
  CHECK_THROWS_AS(empty.unexpose("add"), InvalidArgument);
  CHECK_THROWS_AS(function_schema(empty, "add"), InvalidArgument);
  CHECK_THROWS_AS(exposed_functions(empty), InvalidArgument);
  CHECK_THROWS_AS(empty.each({"b"}), InvalidArgument);
  CHECK_THROWS_AS(empty.peers(), InvalidArgument);
  CHECK_THROWS_AS(empty.wait_for_peer("b", 1s), InvalidArgument);
  CHECK_THROWS_AS(empty.on_membership([](const MembershipChange&) {}), InvalidArgument);
  CHECK_THROWS_AS(empty.address(), InvalidArgument);
  CHECK_THROWS_AS(empty.shutdown(1s), InvalidArgument);
  CHECK_THROWS_AS(empty.workers(), InvalidArgument);
  CHECK_THROWS_AS(detail::NodeAccess::host(empty), InvalidArgument);
  CHECK(empty.name().empty());
  CHECK(empty.rank() == -1);
  CHECK(empty.world_size() == 0);
}

TEST_CASE("a node that is moved to itself stays as it is") {
  Pair pair;
  pair.b.expose<&moving::add>();
  Node& same = pair.a;
  pair.a = std::move(same);
  CHECK(pair.a.call<&moving::add>("b", 1, 2).get() == 3);
}

TEST_CASE("functions are called while a node is being moved from one place to another") {
  Pair pair;
  pair.b.expose<&moving::add>();
  Node moved = std::move(pair.b);
  CHECK(moved.name() == "b");
  CHECK(pair.a.call<&moving::add>("b", 1, 2).get() == 3);
  Node other = pair.world.join("c");
  other = std::move(moved);
  CHECK(other.name() == "b");
  CHECK(pair.a.call<&moving::add>("b", 1, 2).get() == 3);
  CHECK(pair.world.log.contain("c is lost"));
}

}  // namespace moved_node_test
}  // namespace batchrpc
