#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

#include "batchrpc/call/explain.hpp"
#include "rref/objects.hpp"
#include "rref/rref_messages.hpp"

// What keeps an object alive, and what does not, when nodes are cut off, die or return: the rules
// of docs/rref-protocol.md.

namespace batchrpc {
namespace rref_lifetime_test {

using namespace std::chrono_literals;
using detail::HoldUpdate;
using objects::Counter;
using objects::Holder;
using test::KeepingWorld;
using test::ObjectWorld;
using test::outcome;
using test::VirtualWorld;

TEST_CASE("R1: an object is destroyed within a second of its last release") {
  const ObjectWorld nodes;
  auto counter = nodes.user.create<Counter>("owner", 1);
  counter.ready().get();
  counter = {};
  nodes.world.run_for(10ms);
  CHECK(Counter::alive == 0);
}

TEST_CASE("R4: a node that is cut off for less than the lease loses nothing") {
  const ObjectWorld nodes;
  const auto counter = nodes.user.create<Counter>("owner", 1);
  CHECK(counter.call<&Counter::add>(1).get() == 2);
  nodes.world.network->partition("user", "owner");
  nodes.world.run_for(25s);
  CHECK(Counter::alive == 1);
  CHECK(rref_report(nodes.owner).owned.at(0).holders.at(0).away);
  nodes.world.network->heal("user", "owner");
  nodes.world.run_for(40s);
  CHECK(counter.call<&Counter::add>(1).get() == 3);
  CHECK_FALSE(rref_report(nodes.owner).owned.at(0).holders.at(0).away);
}

TEST_CASE("R4: a node that is cut off for longer learns that its handles have expired") {
  const ObjectWorld nodes;
  const auto counter = nodes.user.create<Counter>("owner", 1);
  CHECK(counter.call<&Counter::add>(1).get() == 2);
  nodes.world.network->partition("user", "owner");
  nodes.world.run_for(33s);
  CHECK(Counter::alive == 1);
  nodes.world.run_for(5s);
  CHECK(Counter::alive == 0);
  auto waiting = counter.call<&Counter::add>(1);
  nodes.world.network->heal("user", "owner");
  nodes.world.run_for(10s);
  const auto first = outcome(std::move(waiting));
  CHECK(first.code() == ErrorCode::rref_expired);
  CHECK_THAT(explain(first.error()),
             Catch::Contains("Promise 1, at most once: it never ran.") &&
                 Catch::Contains("What to do: create a new object, from a saved state"));
  const auto result = outcome(counter.call<&Counter::add>(1));
  CHECK(result.code() == ErrorCode::rref_expired);
  CHECK_FALSE(test::may_have_run(result.error()));
  CHECK_THAT(result.message(), Catch::Contains("rref_lease"));
}

TEST_CASE("R8: an object whose creation was not sent never is, and its handle says so") {
  const ObjectWorld nodes;
  nodes.settle();
  nodes.world.network->partition("user", "owner");
  nodes.world.run_for(10s);
  const auto counter = nodes.user.create<Counter>("owner", 1);
  nodes.world.run_for(10s);
  nodes.world.network->heal("user", "owner");
  nodes.user.wait_for_peer("owner", 60s).get();
  const auto ready = outcome(counter.ready());
  const auto called = outcome(counter.call<&Counter::add>(1));
  CHECK(ready.code() == ErrorCode::not_sent);
  CHECK(called.code() == ErrorCode::not_sent);
  CHECK_FALSE(test::may_have_run(called.error()));
  for (const std::string& message : {ready.message(), called.message()}) {
    CHECK_THAT(message,
               Catch::StartsWith(
                   "the object of this RRef was never created; create a new one: owner is lost"));
  }
  CHECK_THAT(explain(called.error()),
             Catch::StartsWith("NotSent: the call of 'objects::Counter") &&
                 Catch::Contains("if the call was to create an object, create a new one"));
  CHECK(nodes.user.create<Counter>("owner", 1).call<&Counter::add>(1).get() == 2);
}

TEST_CASE("R4: what another node has kept alive is there again for one that returns late") {
  KeepingWorld nodes;
  const auto counter = nodes.user.create<Counter>("owner", 1);
  nodes.user.call<void(RRef<Counter>)>("third", "keep", counter).get();
  nodes.world.network->partition("user", "owner");
  nodes.world.run_for(40s);
  nodes.world.network->heal("user", "owner");
  nodes.world.run_for(10s);
  CHECK(counter.call<&Counter::add>(1).get() == 2);
  nodes.kept = {};
  nodes.settle();
  CHECK(counter.call<&Counter::add>(1).get() == 3);
}

TEST_CASE("R4: the lease is a setting, and not shorter than a peer may be silent") {
  VirtualWorld world;
  NodeOptions options = world.options("owner");
  options.liveness.rref_lease = 12s;
  const Node owner(options);
  const Node user = world.join("user");
  Counter::alive = 0;
  test::expose_objects(owner);
  const auto counter = user.create<Counter>("owner", 1);
  counter.ready().get();
  world.network->partition("user", "owner");
  world.run_for(14s);
  CHECK(Counter::alive == 1);
  world.run_for(6s);
  CHECK(Counter::alive == 0);
  options.liveness.rref_lease = Duration::zero();
  CHECK_THROWS_WITH(Node(options), Catch::Contains("rref_lease"));
}

TEST_CASE("R4: whoever logs that a lease is over may look at what is held") {
  VirtualWorld world;
  std::optional<Node> owner;
  std::size_t left = 1;
  NodeOptions options = world.options("owner");
  options.logging.sink = [&](LogLevel /*level*/, std::string_view line) {
    if (line.find("were released") != std::string_view::npos)
      left = rref_report(*owner).owned.size();
  };
  owner.emplace(options);
  const Node user = world.join("user");
  test::expose_objects(*owner);
  const auto counter = user.create<Counter>("owner", 1);
  counter.ready().get();
  world.network->partition("user", "owner");
  world.run_for(40s);
  CHECK(left == 0);
}

TEST_CASE("R5: what a killed node held is released soon") {
  const ObjectWorld nodes;
  const auto counter = nodes.user.create<Counter>("owner", 1);
  const auto holder = nodes.user.create<Holder>("owner", counter);
  holder.ready().get();
  nodes.world.kill("user");
  nodes.world.run_for(9s);
  CHECK(Counter::alive == 0);
  CHECK(Holder::alive == 0);
  CHECK(rref_report(nodes.owner).owned.empty());
}

TEST_CASE("R5: a node that dies may have passed a handle on of which the owner has not heard") {
  KeepingWorld nodes;
  const Node fourth = nodes.world.join("fourth");
  RRef<Counter> kept;
  fourth.expose("keep", [&kept](RRef<Counter> handle) { kept = std::move(handle); });
  nodes.third.expose("pass", [&nodes](const RRef<Counter>& handle) {
    return nodes.third.call<void(RRef<Counter>)>("fourth", "keep", handle);
  });
  nodes.world.network->set_link("third", "owner", {.latency = 2s});
  nodes.world.network->set_link("fourth", "owner", {.latency = 500ms});
  nodes.user.call<void(RRef<Counter>)>("third", "pass", nodes.user.create<Counter>("owner", 1))
      .get();
  nodes.world.kill("third");
  nodes.world.run_for(20s);
  CHECK(kept.call<&Counter::add>(1).get() == 2);
  kept = {};
  nodes.world.run_for(3s);
  CHECK(Counter::alive == 0);
}

TEST_CASE("R5: a node that was cut off, and then dies, has its time all the same") {
  VirtualWorld world;
  const Node owner = world.root("owner");
  std::optional<Node> user(world.join("user"));
  Counter::alive = 0;
  test::expose_objects(owner);
  user->create<Counter>("owner", 1).ready().get();
  const auto counter = user->create<Counter>("owner", 2);
  counter.ready().get();
  world.network->partition("user", "owner");
  world.run_for(20s);
  CHECK(Counter::alive == 1);
  world.kill("user");
  user.reset();
  world.network->heal("user", "owner");
  world.network->rejoin("user");
  user.emplace(world.join("user"));
  world.run_for(3s);
  CHECK(Counter::alive == 1);  // a handle that it has sent may be arriving
  world.run_for(5s);
  CHECK(Counter::alive == 0);
}

TEST_CASE("R5: a receiver that was restarted before anybody looked has its time as well") {
  KeepingWorld nodes;
  const Node fourth = nodes.world.join("fourth");
  RRef<Counter> kept;
  fourth.expose("keep", [&kept](RRef<Counter> handle) { kept = std::move(handle); });
  NodeOptions options = nodes.world.joining("passing");
  options.shutdown_timeout = 0s;
  std::optional<Node> passing(options);
  passing->expose("pass", [&passing](const RRef<Counter>& handle) {
    return passing->call<void(RRef<Counter>)>("fourth", "keep", handle);
  });
  nodes.world.network->set_link("passing", "owner", {.latency = 4s});
  nodes.world.network->set_link("fourth", "owner", {.latency = 4s});
  Future<void> passed = nodes.user.call<void(RRef<Counter>)>(
      "passing", "pass", nodes.user.create<Counter>("owner", 1));
  nodes.world.run_for(50ms);
  REQUIRE(kept);
  nodes.world.kill("passing");
  passing.reset();
  nodes.world.network->set_link("passing", "owner", {});
  nodes.world.network->rejoin("passing");
  passing.emplace(nodes.world.join("passing"));
  nodes.world.run_for(3s);
  CHECK(Counter::alive == 1);
  nodes.world.run_for(10s);
  CHECK(kept.call<&Counter::add>(1).get() == 2);
}

TEST_CASE("R5: a node that ends gives its handles back, but those on their way") {
  KeepingWorld nodes;
  auto counter = nodes.user.create<Counter>("owner", 1);
  auto other = nodes.user.create<Counter>("owner", 1);
  other.ready().get();
  nodes.world.network->set_link("third", "owner", {.latency = 1s});
  Future<void> passed = nodes.user.call<void(RRef<Counter>)>("third", "keep", counter);
  counter = {};
  nodes.world.run_for(20ms);
  CHECK(passed.ready());
  other = {};
  nodes.user.shutdown(0s);
  nodes.world.run_for(100ms);
  CHECK(Counter::alive == 1);
  nodes.world.run_for(20s);
  CHECK(nodes.kept.call<&Counter::add>(1).get() == 2);
}

TEST_CASE("R5: a node that ends gives back the handles that outlive it") {
  ObjectWorld nodes;
  const auto counter = nodes.user.create<Counter>("owner", 1);
  counter.ready().get();
  nodes.user.shutdown(0s);
  nodes.world.run_for(100ms);
  CHECK(Counter::alive == 0);
  CHECK(outcome(counter.call<&Counter::add>(1)).code() == ErrorCode::shut_down);
}

TEST_CASE("R5: nor does it give back a handle that leaves it while it is ending") {
  ObjectWorld nodes;
  Promise<void> open;
  nodes.user.expose("give", [&] {
    return open.get_future().then([made = nodes.user.create<Counter>("owner", 1)] { return made; });
  });
  // So that the node, when it has told its objects to end, still has something to send.
  nodes.world.network->set_link("user", "far",
                                {.latency = 20ms, .capacity = std::size_t{64} << 10});
  const Node far = nodes.world.join("far");
  far.expose("store", [](const Bytes& /*bytes*/) {});
  const auto given = nodes.third.call<RRef<Counter>()>("user", "give");
  const auto slow = nodes.user.call<void(Bytes)>("far", "store", Bytes::allocate(64 << 20));
  nodes.world.run_for(100ms);
  nodes.world.network->set_link("third", "owner", {.latency = 1s});
  nodes.world.loop->schedule(nodes.world.loop->now() + 1500ms, [&] { open.set_value(); });
  nodes.user.shutdown(1s);
  nodes.world.run_for(100ms);
  REQUIRE(given.ready());
  CHECK(Counter::alive == 1);
  nodes.world.run_for(20s);
  CHECK(given.get().call<&Counter::add>(1).get() == 2);
}

TEST_CASE("R8: no more objects are awaited than a limit, whatever peers speak of") {
  const ObjectWorld nodes;
  nodes.user.create<Counter>("owner", 1).ready().get();
  const auto handle = nodes.user.create<Counter>("owner", 2);
  const std::uint64_t owner = detail::RRefAccess::reference(handle).object().owner;
  const auto awaited_after = [&](const Node& peer, std::uint64_t creator) {
    std::vector<HoldUpdate> updates;
    for (std::uint64_t i = 1; i <= 9000; ++i) {
      updates.push_back({.object = {.owner = owner, .creator = creator, .number = i},
                         .kind = HoldUpdate::hold,
                         .number = i});
    }
    peer.peer("owner").notify<void(std::vector<HoldUpdate>)>(detail::kHold, updates);
    nodes.world.run_for(100ms);
    std::size_t awaited = 0;
    for (const OwnedRRefs& owned : rref_report(nodes.owner).owned) {
      if (owned.type.empty()) awaited = owned.objects;
    }
    return awaited;
  };
  CHECK(awaited_after(nodes.third, 5) == 8192);
  CHECK(awaited_after(nodes.third, 6) == 8192);  // whoever is said to create them
  std::vector<Node> others;
  for (std::size_t i = 2; i <= 10; ++i) {
    others.push_back(nodes.world.join("other" + std::to_string(i)));
    CHECK(awaited_after(others.back(), 5 + i) == std::min<std::size_t>(65'536, 8192 * i));
  }
  CHECK(nodes.user.create<Counter>("owner", 3).call<&Counter::add>(1).get() == 4);
  nodes.world.run_for(11s);
  CHECK(rref_report(nodes.owner).owned.size() == 1);
}

TEST_CASE("R8: what a node holds goes with it, whatever objects it speaks of") {
  ObjectWorld nodes;
  const auto counter = nodes.user.create<Counter>("owner", 1);
  counter.ready().get();
  const std::uint64_t owner = detail::RRefAccess::reference(counter).object().owner;
  // Of no node that can be: incarnations are not zero.
  const std::vector<HoldUpdate> updates{
      {.object = {.owner = owner, .creator = 0, .number = 7}, .kind = HoldUpdate::hold}};
  nodes.third.peer("owner").notify<void(std::vector<HoldUpdate>)>(detail::kHold, updates);
  nodes.world.run_for(10ms);
  REQUIRE(rref_report(nodes.owner).owned.size() == 2);
  nodes.world.kill("third");
  nodes.world.run_for(7s);  // the holder is released, and the object is awaited for 3 s more
  for (const OwnedRRefs& owned : rref_report(nodes.owner).owned) {
    for (const RRefHolder& holder : owned.holders)
      CHECK(holder.node == "user");
  }
  nodes.world.run_for(10s);
  CHECK(rref_report(nodes.owner).owned.size() == 1);
}

TEST_CASE("R9: to pass a handle on takes no more messages than one call, and to drop it one") {
  KeepingWorld nodes;
  const auto counter = nodes.user.create<Counter>("owner", 1);
  nodes.user.call<void(RRef<Counter>)>("third", "keep", counter).get();
  nodes.kept = {};
  nodes.settle();
  int messages = 0;
  nodes.world.network->set_trace([&messages](std::string_view line) {
    if (line.find(" reads ") != std::string_view::npos) ++messages;
  });
  nodes.world.run_for(10ms);
  REQUIRE(messages == 0);  // no ping comes in between
  nodes.user.call<void(RRef<Counter>)>("third", "keep", counter).get();
  nodes.world.run_for(100ms);
  CHECK(messages == 4);  // the call itself, and two
  messages = 0;
  nodes.kept = {};
  nodes.world.run_for(100ms);
  CHECK(messages == 1);
  nodes.world.network->set_trace({});
}

}  // namespace rref_lifetime_test
}  // namespace batchrpc
