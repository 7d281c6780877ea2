#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "node/node_core.hpp"
#include "rref/objects.hpp"

// Handles on their way, and what keeps their objects meanwhile: R2 and R3 of docs/rref-protocol.md.

namespace batchrpc {
namespace rref_forks_test {

using namespace std::chrono_literals;
using objects::Counter;
using test::KeepingWorld;
using test::ObjectWorld;
using test::outcome;

TEST_CASE("R2: the sender of a handle may die as soon as that has arrived") {
  KeepingWorld nodes;
  nodes.world.network->set_link("third", "owner", {.latency = 2s});
  {
    const auto counter = nodes.user.create<Counter>("owner", 1);
    nodes.user.call<void(RRef<Counter>)>("third", "keep", counter).get();
  }
  nodes.world.kill("user");
  nodes.world.run_for(40s);
  CHECK(nodes.kept.call<&Counter::add>(1).get() == 2);
  nodes.kept = {};
  nodes.world.run_for(10s);
  CHECK(Counter::alive == 0);
}

TEST_CASE(
    "R2: a handle that is on its way when its sender has dropped its own arrives to an object") {
  KeepingWorld nodes;
  nodes.world.network->set_link("user", "third", {.latency = 2s});
  nodes.user.peer("third").notify<void(RRef<Counter>)>("keep",
                                                       nodes.user.create<Counter>("owner", 1));
  nodes.world.run_for(3s);
  CHECK(Counter::alive == 1);
  nodes.world.run_for(30s);
  CHECK(nodes.kept.call<&Counter::add>(1).get() == 2);
}

TEST_CASE("R3: handles in messages that nobody decodes are given back") {
  const ObjectWorld nodes;
  nodes.world.network->set_link("user", "third", {.latency = 500ms});
  const auto call = [&](const char* function) {
    return outcome(nodes.user.call<void(RRef<Counter>)>("third", function,
                                                        nodes.user.create<Counter>("owner", 1)));
  };
  CHECK(call("nothing").code() == ErrorCode::not_found);
  nodes.third.expose("other", [](int) {});
  CHECK(call("other").code() == ErrorCode::bad_signature);
  nodes.user.peer("third").notify<void(RRef<Counter>)>("nothing",
                                                       nodes.user.create<Counter>("owner", 1));
  nodes.third.expose("give", [&nodes] { return nodes.third.create<Counter>("owner", 1); });
  Future<RRef<Counter>> late =
      nodes.user.peer("third").with({.timeout = 800ms}).call<RRef<Counter>()>("give");
  CHECK(outcome(std::move(late)).code() == ErrorCode::timed_out);
  nodes.world.run_for(15s);  // a reply may be on its way for long
  CHECK(Counter::alive == 0);
  CHECK(rref_report(nodes.user).in_flight == 0);
  CHECK(rref_report(nodes.third).in_flight == 0);
}

TEST_CASE("R3: a handle waits with the message that carries it, however long that takes") {
  KeepingWorld nodes;
  const auto lock = std::make_shared<AsyncMutex>();
  nodes.third.expose("wait",
                     [](const RRef<Counter>& handle) { return handle.call<&Counter::add>(1); },
                     {.exclusive = lock});
  std::optional<AsyncMutex::Guard> held = lock->try_lock();
  Future<int> sum = nodes.user.peer("third")
                        .with({.timeout = Duration::max()})
                        .call<int(RRef<Counter>)>("wait", nodes.user.create<Counter>("owner", 1));
  nodes.world.run_for(10min);
  CHECK(Counter::alive == 1);
  held.reset();
  CHECK(sum.get() == 2);
  nodes.world.run_for(3s);
  CHECK(Counter::alive == 0);
}

TEST_CASE("R3: a handle that a node sends to itself is kept by nobody else") {
  ObjectWorld nodes;
  const auto keep = [&nodes](const char* function) {
    return nodes.user.call<void(RRef<Counter>)>("user", function,
                                                nodes.user.create<Counter>("owner", 1));
  };
  nodes.user.expose("keep", [](const RRef<Counter>& /*handle*/) {});
  nodes.user.expose("give", [](RRef<Counter> handle) { return handle; });
  keep("keep").get();
  {
    const auto counter = nodes.user.create<Counter>("owner", 1);
    CHECK(nodes.user.call<RRef<Counter>(RRef<Counter>)>("user", "give", counter).get() == counter);
    nodes.settle();
    CHECK(rref_report(nodes.user).in_flight == 0);
    CHECK(Counter::alive == 1);
  }
  nodes.user.expose("other", [](int) {});
  CHECK(outcome(keep("other")).code() == ErrorCode::bad_signature);
  nodes.world.run_for(10s);
  CHECK(rref_report(nodes.user).in_flight == 0);
  CHECK(Counter::alive == 0);
}

TEST_CASE("R3: a handle to an object of the dead that a node sends to itself is given back") {
  const ObjectWorld nodes;
  nodes.user.expose("keep", [](const RRef<Counter>& /*handle*/) {});
  auto counter = nodes.user.create<Counter>("owner", 1);
  counter.ready().get();
  nodes.world.kill("owner");
  nodes.user.call<void(RRef<Counter>)>("user", "keep", counter).get();
  counter = {};
  nodes.world.run_for(2s);
  CHECK(rref_report(nodes.user).in_flight == 0);
  CHECK(rref_report(nodes.user).used.empty());
}

TEST_CASE("R3: what two nodes have sent each other of the dead ends with the lease") {
  KeepingWorld nodes;
  nodes.user.expose("keep", [](const RRef<Counter>& /*handle*/) {});
  auto counter = nodes.user.create<Counter>("owner", 1);
  counter.ready().get();
  nodes.world.kill("owner");
  nodes.user.call<void(RRef<Counter>)>("third", "keep", counter).get();
  nodes.third.call<void(RRef<Counter>)>("user", "keep", nodes.kept).get();
  nodes.kept = {};
  counter = {};
  nodes.world.run_for(25s);
  CHECK(rref_report(nodes.user).in_flight == 1);
  CHECK(rref_report(nodes.third).in_flight == 1);
  nodes.world.run_for(10s);
  CHECK(rref_report(nodes.user).in_flight == 0);
  CHECK(rref_report(nodes.third).in_flight == 0);
  CHECK(rref_report(nodes.third).used.empty());
}

TEST_CASE("R3: a handle waits for an owner that is out of reach for less than the lease") {
  KeepingWorld nodes;
  auto counter = nodes.user.create<Counter>("owner", 1);
  counter.ready().get();
  nodes.world.network->partition("user", "owner");
  nodes.world.network->partition("third", "owner");
  nodes.user.call<void(RRef<Counter>)>("third", "keep", counter).get();
  counter = {};
  nodes.world.run_for(20s);
  CHECK(rref_report(nodes.user).in_flight == 1);
  nodes.world.network->heal("user", "owner");
  nodes.world.network->heal("third", "owner");
  nodes.world.run_for(10s);
  CHECK(rref_report(nodes.user).in_flight == 0);
  CHECK(nodes.kept.call<&Counter::add>(1).get() == 2);
}

TEST_CASE("R3: an object of its own that a node sends to itself goes within a second") {
  const ObjectWorld nodes;
  nodes.user.expose("keep", [](const RRef<Counter>& /*handle*/) {});
  for (int i = 0; i < 10; ++i) {  // at any time between two ticks
    auto own = nodes.user.own(std::make_shared<Counter>(1));
    nodes.user.call<void(RRef<Counter>)>("user", "keep", own).get();
    own = {};
    nodes.world.run_for(1s);
    CHECK(Counter::alive == 0);
    nodes.world.run_for(2370ms);
  }
}

TEST_CASE("R3: a handle of the dead that a node has sent to itself and not decoded is given back") {
  const ObjectWorld nodes;
  nodes.user.expose("other", [](int) {});
  auto counter = nodes.user.create<Counter>("owner", 1);
  counter.ready().get();
  const auto lock = std::make_shared<AsyncMutex>();
  nodes.user.expose("wait", [](const RRef<Counter>& /*handle*/) {}, {.exclusive = lock});
  nodes.world.kill("owner");
  {
    const std::optional<AsyncMutex::Guard> held = lock->try_lock();
    CHECK(outcome(nodes.user.peer("user")
                      .with({.timeout = 2s})
                      .call<void(RRef<Counter>)>("wait", counter))
              .code() == ErrorCode::timed_out);
  }
  counter = {};
  nodes.world.run_for(5s);
  CHECK(rref_report(nodes.user).in_flight == 0);
}

TEST_CASE("R3: who is out of the owner's reach for long may pass on what another keeps alive") {
  test::VirtualWorld world;
  const ObjectWorld::LastTasks last_tasks{world};
  objects::Counter::alive = 0;
  const Node root = world.root("root");
  const Node owner = world.join("owner");
  const Node first = world.join("first");
  const Node second = world.join("second");
  const Node third = world.join("third");
  test::expose_objects(owner);
  RRef<Counter> kept;
  third.expose("keep", [&kept](RRef<Counter> handle) { kept = std::move(handle); });
  second.expose("pass", [&second](const RRef<Counter>& handle) {
    second.peer("third").notify<void(RRef<Counter>)>("keep", handle);
  });
  auto counter = first.create<Counter>("owner", 1);
  const auto another = second.create<Counter>("owner", 1);
  third.create<Counter>("owner", 1).ready().get();  // all know the owner
  counter.ready().get();
  another.ready().get();
  world.network->partition("second", "owner");
  world.run_for(45s);
  world.network->partition("third", "owner");
  world.run_for(1s);
  first.call<void(RRef<Counter>)>("second", "pass", counter).get();
  counter = {};
  world.run_for(10s);
  world.network->heal("third", "owner");
  world.run_for(10s);
  CHECK(kept.call<&Counter::add>(1).get() == 2);
}

TEST_CASE("R3: handles that an owner does not answer for end with the lease") {
  const ObjectWorld nodes;
  const Node evil = nodes.world.join("evil");
  nodes.third.expose("back", [](RRef<Counter> handle) { return handle; });
  nodes.user.expose("round", [&nodes](const RRef<Counter>& handle) {
    return nodes.user.call<RRef<Counter>(RRef<Counter>)>("third", "back", handle)
        .then([](const RRef<Counter>& /*handle*/) {});
  });
  // Of a node that lives, and has never had objects.
  const std::uint64_t stranger = detail::NodeAccess::core(evil)->incarnation();
  const objects::Forged handle{.owner = "evil", .object = {stranger, 5, 1}};
  nodes.owner.call<void(objects::Forged)>("user", "round", handle).get();
  nodes.world.run_for(60s);
  CHECK(rref_report(nodes.user).in_flight == 0);
  CHECK(rref_report(nodes.third).in_flight == 0);
}

}  // namespace rref_forks_test
}  // namespace batchrpc
