#include <catch2/catch.hpp>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "node/node_core.hpp"
#include "rref/objects.hpp"
#include "rref/rref_messages.hpp"

// Handles that peers make up: they take nothing from whoever has honest ones.

namespace batchrpc {
namespace rref_forged_test {

using namespace std::chrono_literals;
using detail::HoldUpdate;
using detail::ObjectId;
using objects::Counter;
using objects::Forged;
using test::KeepingWorld;
using test::ObjectWorld;
using test::outcome;

struct ForgedWorld : ObjectWorld {
  ForgedWorld() {
    user.expose("take", [this](std::vector<RRef<Counter>> handles) { taken = std::move(handles); });
    user.expose("drop", [](const std::vector<RRef<Counter>>& /*handles*/) {});
  }
  Result<void> forge(const char* function, std::vector<Forged> handles) const {
    return outcome(third.call<void(std::vector<Forged>)>("user", function, std::move(handles)));
  }
  std::vector<RRef<Counter>> taken;
};

TEST_CASE("a handle that names another owner than an incarnation's is refused") {
  ForgedWorld nodes;
  auto first = nodes.user.create<Counter>("owner", 1);
  const auto second = nodes.user.create<Counter>("owner", 1);
  first.ready().get();
  second.ready().get();
  const std::uint64_t owner = detail::NodeAccess::core(nodes.owner)->incarnation();
  CHECK_FALSE(nodes.forge("drop", {{.owner = "third", .object = {owner, 77, 1}}}).has_value());
  nodes.world.run_for(3s);
  nodes.world.network->partition("user", "owner");
  nodes.world.run_for(10s);
  first = {};  // cannot be told
  CHECK_FALSE(nodes.forge("drop", {{.owner = "third", .object = {owner, 77, 1}}}).has_value());
  nodes.world.run_for(2s);
  nodes.world.network->heal("user", "owner");
  nodes.world.run_for(20s);
  CHECK(Counter::alive == 1);
  CHECK(second.call<&Counter::add>(1).get() == 2);
}

TEST_CASE("what was not told an owner is not forgotten for a handle that another claims") {
  ForgedWorld nodes;
  auto counter = nodes.user.create<Counter>("owner", 1);
  counter.ready().get();
  nodes.world.network->partition("user", "owner");
  nodes.world.run_for(10s);
  counter = {};
  nodes.world.run_for(1s);
  const std::uint64_t owner = detail::NodeAccess::core(nodes.owner)->incarnation();
  CHECK_FALSE(nodes.forge("drop", {{.owner = "third", .object = {owner, 77, 1}}}).has_value());
  nodes.world.run_for(2s);
  nodes.world.network->heal("user", "owner");
  nodes.world.run_for(20s);
  CHECK(Counter::alive == 0);
}

TEST_CASE("an honest handle leads to its owner, whoever has claimed the object before") {
  ForgedWorld nodes;
  auto own = nodes.owner.own(std::make_shared<Counter>(5));
  CHECK(nodes
            .forge("take",
                   {{.owner = "third", .object = detail::RRefAccess::reference(own).object()}})
            .has_value());
  const std::vector<RRef<Counter>> claimed = std::exchange(nodes.taken, {});
  REQUIRE(claimed.size() == 1);
  nodes.owner.call<void(std::vector<RRef<Counter>>)>("user", "take", std::vector{own}).get();
  REQUIRE(nodes.taken.size() == 1);
  CHECK(nodes.taken.front().owner() == "owner");
  CHECK(nodes.taken.front().call<&Counter::add>(1).get() == 6);
  CHECK(outcome(claimed.front().call<&Counter::add>(1)).code() == ErrorCode::owner_lost);
  own = {};
  nodes.taken.clear();
  nodes.world.run_for(5s);
  CHECK(Counter::alive == 0);
}

TEST_CASE("a fork is not ended by who guesses its number, by way of the owner") {
  KeepingWorld nodes;
  const Node evil = nodes.world.join("evil");
  auto counter = nodes.user.create<Counter>("owner", 1);
  counter.ready().get();
  nodes.world.network->set_link("user", "third", {.latency = 2s});
  nodes.user.peer("third").notify<void(RRef<Counter>)>("keep", counter);
  counter = {};
  const auto other = evil.create<Counter>("owner", 2);
  other.ready().get();
  std::vector<HoldUpdate> updates;
  for (std::uint64_t i = 0; i < 100; ++i) {
    for (const std::uint64_t number : {i, i << 32}) {
      updates.push_back({.object = detail::RRefAccess::reference(other).object(),
                         .kind = HoldUpdate::hold,
                         .fork = {detail::NodeAccess::core(nodes.user)->incarnation(), number},
                         .parent = "user",
                         .number = 1000 + updates.size()});
    }
  }
  evil.peer("owner").notify<void(std::vector<HoldUpdate>)>(detail::kHold, updates);
  nodes.world.run_for(10s);
  CHECK(nodes.kept.call<&Counter::add>(1).get() == 2);
}

TEST_CASE("a handle that waits in a node's own queue is not released by a forged one") {
  const ForgedWorld nodes;
  const auto lock = std::make_shared<AsyncMutex>();
  nodes.user.expose("wait",
                    [](const RRef<Counter>& handle) { return handle.call<&Counter::add>(1); },
                    {.exclusive = lock});
  auto counter = nodes.user.create<Counter>("owner", 1);
  counter.ready().get();
  const ObjectId object = detail::RRefAccess::reference(counter).object();
  std::optional<AsyncMutex::Guard> held = lock->try_lock();
  auto sum = nodes.user.peer("user")
                 .with({.timeout = Duration::max()})
                 .call<int(RRef<Counter>)>("wait", counter);
  counter = {};
  nodes.settle();
  std::vector<Forged> handles;
  for (std::uint64_t i = 0; i < 100; ++i) {
    for (const std::uint64_t number : {i, i << 32}) {
      handles.push_back({.owner = "owner",
                         .object = object,
                         .parent = "user",
                         .fork = {detail::NodeAccess::core(nodes.user)->incarnation(), number}});
    }
  }
  CHECK(nodes.forge("drop", handles).has_value());
  nodes.world.run_for(5s);
  held.reset();
  CHECK(sum.get() == 2);
}

TEST_CASE("handles of many owners that nobody knows cost no more than they are many") {
  const ForgedWorld nodes;
  std::vector<Forged> handles;
  for (std::uint64_t i = 1; i <= 40'000; ++i)
    handles.push_back({.owner = "nobody" + std::to_string(i), .object = {i, 5, i}});
  const std::clock_t before = std::clock();
  CHECK(nodes.forge("drop", handles).has_value());
  nodes.world.run_for(3s);
  CHECK(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC < 10);  // it took 72 s
}

}  // namespace rref_forged_test
}  // namespace batchrpc
