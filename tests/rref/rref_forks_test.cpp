#include <catch2/catch.hpp>
#include <optional>
#include <string>

#include "rref/objects.hpp"

// Handles on their way, and what keeps their objects meanwhile: R2 and R3 of docs/rref-protocol.md.

namespace batchrpc {
namespace {

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
  nodes.user.notify<void(RRef<Counter>)>("third", "keep", nodes.user.create<Counter>("owner", 1));
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
  nodes.user.notify<void(RRef<Counter>)>("third", "nothing",
                                         nodes.user.create<Counter>("owner", 1));
  nodes.third.expose("give", [&nodes] { return nodes.third.create<Counter>("owner", 1); });
  Future<RRef<Counter>> late =
      nodes.user.call_with<RRef<Counter>()>({.timeout = 800ms}, "third", "give");
  CHECK(outcome(std::move(late)).code() == ErrorCode::timed_out);
  nodes.world.run_for(15s);  // a reply may be on its way for long
  CHECK(Counter::alive == 0);
  CHECK(nodes.user.rrefs().in_flight == 0);
  CHECK(nodes.third.rrefs().in_flight == 0);
}

TEST_CASE("R3: a handle waits with the message that carries it, however long that takes") {
  KeepingWorld nodes;
  const auto lock = std::make_shared<AsyncMutex>();
  nodes.third.expose("wait",
                     [](const RRef<Counter>& handle) { return handle.call<&Counter::add>(1); },
                     {.exclusive = lock});
  std::optional<AsyncMutex::Guard> held = lock->try_lock();
  Future<int> sum = nodes.user.call_with<int(RRef<Counter>)>(
      {.timeout = Duration::max()}, "third", "wait", nodes.user.create<Counter>("owner", 1));
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
    CHECK(nodes.user.rrefs().in_flight == 0);
    CHECK(Counter::alive == 1);
  }
  nodes.user.expose("other", [](int) {});
  CHECK(outcome(keep("other")).code() == ErrorCode::bad_signature);
  nodes.world.run_for(10s);
  CHECK(nodes.user.rrefs().in_flight == 0);
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
  CHECK(nodes.user.rrefs().in_flight == 0);
  CHECK(nodes.user.rrefs().used.empty());
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
  CHECK(nodes.user.rrefs().in_flight == 1);
  CHECK(nodes.third.rrefs().in_flight == 1);
  nodes.world.run_for(10s);
  CHECK(nodes.user.rrefs().in_flight == 0);
  CHECK(nodes.third.rrefs().in_flight == 0);
  CHECK(nodes.third.rrefs().used.empty());
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
  CHECK(nodes.user.rrefs().in_flight == 1);
  nodes.world.network->heal("user", "owner");
  nodes.world.network->heal("third", "owner");
  nodes.world.run_for(10s);
  CHECK(nodes.user.rrefs().in_flight == 0);
  CHECK(nodes.kept.call<&Counter::add>(1).get() == 2);
}

}  // namespace
}  // namespace batchrpc
