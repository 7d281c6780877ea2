#include <catch2/catch.hpp>
#include <chrono>
#include <optional>

#include "rref/objects.hpp"

// What becomes of handles when their owner is out of reach and returns, or is restarted: the rules
// R6 and R7 of docs/rref-protocol.md.

namespace batchrpc {
namespace rref_return_test {

using namespace std::chrono_literals;
using objects::Counter;
using test::ObjectWorld;
using test::outcome;
using test::VirtualWorld;

/// An owner that can end or be restarted, and a node that uses its objects.
struct OwnerWorld {
  OwnerWorld() { test::expose_objects(*owner); }

  VirtualWorld world{};
  const Node root = world.root();
  std::optional<Node> owner{world.join("owner")};
  const Node user = world.join("user");
};

TEST_CASE("R6: what was released while the owner was out of reach is released when it is back") {
  const ObjectWorld nodes;
  std::vector<RRef<Counter>> counters;
  for (int i = 0; i < 10; ++i)
    counters.push_back(nodes.user.create<Counter>("owner", i));
  counters.back().ready().get();
  nodes.world.network->partition("user", "owner");
  nodes.world.run_for(10s);
  counters.resize(3);
  nodes.world.run_for(5s);
  CHECK(Counter::alive == 10);
  nodes.world.network->heal("user", "owner");
  nodes.world.run_for(12s);
  CHECK(Counter::alive == 3);
  CHECK(counters.at(2).call<&Counter::add>(1).get() == 3);
}

TEST_CASE("R6: an object that is made while a list waits to be sent is not released by it") {
  const ObjectWorld nodes;
  const auto first = nodes.user.create<Counter>("owner", 1);
  first.ready().get();
  RRef<Counter> made;
  nodes.user.on_membership([&](const MembershipChange& change) {
    if (change.joined) made = nodes.user.create<Counter>("owner", 5);
  });
  nodes.world.network->partition("user", "owner");
  nodes.world.run_for(10s);
  nodes.world.network->heal("user", "owner");
  nodes.world.run_for(10s);
  REQUIRE(made);
  CHECK(made.call<&Counter::add>(1).get() == 6);
}

TEST_CASE("R6: a creation whose answer is lost with the session is there when it is back") {
  const ObjectWorld nodes;
  nodes.world.network->set_link("user", "owner", {.latency = 20ms});
  nodes.user.create<Counter>("owner", 1).ready().get();
  const auto counter = nodes.user.create<Counter>("owner", 1);
  nodes.world.run_for(25ms);
  nodes.world.network->partition("user", "owner");
  nodes.world.run_for(8s);
  nodes.world.network->heal("user", "owner");
  nodes.world.run_for(10s);
  CHECK(Counter::alive == 1);
  CHECK(counter.call<&Counter::add>(1).get() == 2);
}

TEST_CASE("R7: an owner that was restarted answers for none of its former objects") {
  VirtualWorld world;
  const Node root = world.root();
  std::optional<Node> owner(world.join("owner"));
  const Node user = world.join("user");
  const Node third = world.join("third");
  test::expose_objects(*owner);
  RRef<Counter> kept;
  third.expose("keep", [&kept](RRef<Counter> handle) { kept = std::move(handle); });
  const auto counter = user.create<Counter>("owner", 1);
  CHECK(counter.call<&Counter::add>(1).get() == 2);
  world.kill("owner");
  owner.reset();
  world.network->rejoin("owner");
  owner.emplace(world.join("owner"));
  test::expose_objects(*owner);
  world.run_for(100ms);
  const auto result = outcome(counter.call<&Counter::add>(1));
  CHECK(result.code() == ErrorCode::owner_lost);
  CHECK_FALSE(test::may_have_run(result.error()));
  // And so does a node that gets the handle now.
  user.call<void(RRef<Counter>)>("third", "keep", counter).get();
  CHECK(outcome(kept.call<&Counter::add>(1)).code() == ErrorCode::owner_lost);
  world.run_for(3s);
  CHECK(outcome(kept.call<&Counter::add>(1)).code() == ErrorCode::owner_lost);
  CHECK(user.create<Counter>("owner", 5).call<&Counter::add>(1).get() == 6);
}

TEST_CASE("R7: an owner that was restarted has no former object itself") {
  OwnerWorld nodes;
  const auto counter = nodes.user.create<Counter>("owner", 1);
  counter.ready().get();
  CHECK_THROWS_AS(counter.local().get(), InvalidArgument);
  nodes.world.kill("owner");
  nodes.owner.reset();
  nodes.world.network->rejoin("owner");
  nodes.owner.emplace(nodes.world.join("owner"));
  RRef<Counter> former;
  nodes.owner->expose("keep", [&former](RRef<Counter> handle) { former = std::move(handle); });
  nodes.world.run_for(100ms);
  nodes.user.call<void(RRef<Counter>)>("owner", "keep", counter).get();
  CHECK_FALSE(former.is_owner());
  CHECK_THROWS_AS(former.local().get(), OwnerLost);
  CHECK(outcome(former.call<&Counter::add>(1)).code() == ErrorCode::owner_lost);
  CHECK_THROWS_AS(counter.local().get(), InvalidArgument);
}

TEST_CASE("R7: the users of a node that has ended are told") {
  OwnerWorld nodes;
  const auto counter = nodes.user.create<Counter>("owner", 1);
  counter.ready().get();
  nodes.owner->shutdown(1s);
  nodes.world.run_for(100ms);
  const auto result = outcome(counter.call<&Counter::add>(1));
  CHECK(result.code() == ErrorCode::owner_lost);
  CHECK_THAT(result.message(), Catch::Contains("has shut down"));
}

TEST_CASE("a creation at a node that has shut down is not sent, and there is no owner to be lost") {
  OwnerWorld nodes;
  nodes.user.create<Counter>("owner", 1).ready().get();
  nodes.owner->shutdown(1s);
  nodes.world.run_for(100ms);
  const auto counter = nodes.user.create<Counter>("owner", 1);
  auto ready = counter.ready();
  auto called = counter.call<&Counter::add>(1);
  nodes.world.run_for(10s);
  for (const auto& result : {outcome(std::move(ready)).error(), outcome(std::move(called)).error(),
                             outcome(counter.call<&Counter::add>(1)).error()}) {
    CHECK(code_of(result) == ErrorCode::not_sent);
    CHECK_THAT(describe(result), Catch::Contains("never created") && Catch::Contains("shut down"));
  }
}

TEST_CASE("R7: a call that is made while its owner ends may have run, or finds the owner lost") {
  OwnerWorld nodes;
  const auto counter = nodes.user.create<Counter>("owner", 1);
  counter.ready().get();
  const auto patient = counter.with({.retry = {.attempts = 3}});
  std::vector<Future<int>> calls;
  std::function<void()> call = [&] {
    calls.push_back(counter.call<&Counter::add>(1));
    calls.push_back(patient.call<&Counter::add>(1));
    if (calls.size() < 400)
      nodes.world.loop->schedule(nodes.world.loop->now() + 50us, [&] { call(); });
  };
  call();
  nodes.world.run_for(1ms);
  nodes.owner->shutdown(1s);
  nodes.world.run_for(1s);
  CHECK(calls.size() >= 400);
  std::size_t lost = 0;
  for (auto& made : calls) {
    const auto result = outcome(std::move(made));
    if (result) continue;
    INFO(result.message());
    if (result.code() == ErrorCode::owner_lost) ++lost;
    CHECK((result.code() == ErrorCode::owner_lost || result.code() == ErrorCode::shut_down ||
           result.code() == ErrorCode::peer_lost));
  }
  CHECK(lost > 300);
}

}  // namespace rref_return_test
}  // namespace batchrpc
