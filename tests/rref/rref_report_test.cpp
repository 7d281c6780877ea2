#include <catch2/catch.hpp>

#include "rref/objects.hpp"

// What nodes tell of the objects that they have and use.

namespace batchrpc {
namespace rref_report_test {

using namespace std::chrono_literals;
using objects::Counter;
using test::KeepingWorld;

TEST_CASE("a node tells what objects it has, who holds them, and whose it holds itself") {
  KeepingWorld nodes;
  const auto first = nodes.user.create<Counter>("owner", 1);
  const auto second = nodes.user.create<Counter>("owner", 1);
  const auto own = nodes.owner.own(std::make_shared<Counter>(7));
  nodes.user.call<void(RRef<Counter>)>("third", "keep", first).get();
  nodes.world.run_for(3s);
  const RRefReport report = rref_report(nodes.owner);
  REQUIRE(report.owned.size() == 1);
  const OwnedRRefs& counters = report.owned.at(0);
  CHECK(counters.type == "objects::Counter");
  CHECK(counters.objects == 3);
  CHECK(counters.held_here == 1);
  CHECK(counters.waiting_calls == 0);
  REQUIRE(counters.holders.size() == 2);
  CHECK(counters.holders.at(0).node == "third");
  CHECK(counters.holders.at(0).objects == 1);
  CHECK(counters.holders.at(1).node == "user");
  CHECK(counters.holders.at(1).objects == 2);
  CHECK(counters.holders.at(1).held_for >= 3s);
  CHECK(counters.holders.at(1).held_for <= 4s);
  CHECK(rref_report(nodes.user).used.at(0).owner == "owner");
  CHECK(rref_report(nodes.user).used.at(0).objects == 2);
  CHECK(rref_report(nodes.user).owned.empty());
}

TEST_CASE("a node that ends lists what others hold of it, by type and holder") {
  KeepingWorld nodes;
  const auto first = nodes.user.create<Counter>("owner", 1);
  const auto second = nodes.user.create<Counter>("owner", 1);
  nodes.user.call<void(RRef<Counter>)>("third", "keep", first).get();
  nodes.world.run_for(2s);
  const auto left = nodes.owner.shutdown(0s);
  REQUIRE(left.size() == 2);
  CHECK_THAT(left.at(0), Catch::StartsWith("third holds 1 RRef to objects::Counter, since 2"));
  CHECK_THAT(left.at(1), Catch::StartsWith("user holds 2 RRefs to objects::Counter, since 2"));
}

}  // namespace rref_report_test
}  // namespace batchrpc
