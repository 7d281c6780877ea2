#include <catch2/catch.hpp>
#include <deque>
#include <memory>
#include <optional>

#include "rref/objects.hpp"

// How long creations, waits for objects and waits for peers take at most.

namespace objects {

/// A counter that is made when the gate opens.
inline std::optional<batchrpc::Future<void>> counter_gate;
batchrpc::Future<std::unique_ptr<Counter>> late_counter(int start) {
  return counter_gate->then([start] { return std::make_unique<Counter>(start); });
}

/// Makes counters as slowly.
class Workshop {
 public:
  batchrpc::Future<std::unique_ptr<Counter>> late(int start) { return late_counter(start); }
};

}  // namespace objects

namespace batchrpc {
namespace rref_time_outs_test {

using namespace std::chrono_literals;
using objects::Counter;
using objects::Workshop;
using test::may_have_run;
using test::message_of;
using test::ObjectWorld;
using test::outcome;

struct LateWorld : ObjectWorld {
  LateWorld() {
    objects::counter_gate = gate.get_future();
    owner.expose_factory<&objects::late_counter>();
    owner.expose_class<Workshop()>();
    owner.expose_factory<&Workshop::late>();
    owner.expose("never", [this] { return silent.emplace_back().get_future(); });
  }
  ~LateWorld() { objects::counter_gate.reset(); }
  LateWorld(const LateWorld&) = delete;
  LateWorld& operator=(const LateWorld&) = delete;

  [[nodiscard]] Duration time_of(Future<void> future) const {
    const TimePoint start = world.loop->now();
    CHECK(outcome(std::move(future)).code() == ErrorCode::timed_out);
    return world.loop->now() - start;
  }

  Promise<void> gate;
  std::deque<Promise<void>> silent;
};

TEST_CASE("a creation that takes longer than its time-out has failed, and its object is given up") {
  LateWorld nodes;
  {
    const auto counter =
        nodes.user.peer("owner").with({.timeout = 2s}).create<&objects::late_counter>(1);
    Future<int> waiting = counter.call<&Counter::add>(1);
    nodes.world.run_for(3s);
    const auto made = outcome(counter.ready());
    CHECK(made.code() == ErrorCode::timed_out);
    CHECK_THAT(message_of(made), Catch::Contains("was not created in time") &&
                                     Catch::Contains("late_counter") &&
                                     Catch::Contains("longer timeout"));
    CHECK_FALSE(may_have_run(made.error()));

    nodes.gate.set_value();  // the constructor ends all the same, and what waited for it runs
    CHECK(waiting.get() == 2);
    CHECK(Counter::alive == 1);
    CHECK(outcome(counter.call<&Counter::value>()).code() == ErrorCode::timed_out);
  }
  nodes.settle();
  CHECK(Counter::alive == 0);
}

TEST_CASE("a creation by a method has the time-out of its handle") {
  const LateWorld nodes;
  const RRef<Workshop> workshop = nodes.user.create<Workshop>("owner");
  const auto counter = workshop.with({.timeout = 1s}).create<&Workshop::late>(1);
  nodes.world.run_for(2s);
  CHECK(outcome(counter.ready()).code() == ErrorCode::timed_out);
}

TEST_CASE("a creation is not retried") {
  const LateWorld nodes;
  const CallOptions retrying{.retry = {.attempts = 2}};
  CHECK_THROWS_AS(nodes.user.peer("owner").with(retrying).create<Counter>(1), InvalidArgument);
  const RRef<Workshop> workshop = nodes.user.create<Workshop>("owner");
  CHECK_THROWS_AS(workshop.with(retrying).create<&Workshop::late>(1), InvalidArgument);
}

TEST_CASE("local() waits for the constructor, for the time of the handle") {
  LateWorld nodes;
  const auto counter = nodes.owner.create<&objects::late_counter>("owner", 5);
  Future<std::shared_ptr<Counter>> object = counter.local();
  CHECK_FALSE(object.ready());
  CHECK(outcome(counter.with({.timeout = 1s}).local()).code() == ErrorCode::timed_out);
  nodes.gate.set_value();
  CHECK(object.get()->value() == 5);
  CHECK(counter.local().ready());  // at once
}

TEST_CASE("the time-out of calls, creations and waits can be changed while the node lives") {
  const LateWorld nodes;
  CHECK(nodes.user.call_timeout() == 60s);
  CHECK(nodes.time_of(nodes.user.call<void()>("owner", "never")) == 60s);
  nodes.user.set_call_timeout(3s);
  CHECK(nodes.user.call_timeout() == 3s);
  CHECK(nodes.time_of(nodes.user.call<void()>("owner", "never")) == 3s);
  CHECK(nodes.time_of(nodes.user.peer("owner").with({.timeout = 1500ms}).call<void()>("never")) ==
        1500ms);
  CHECK(nodes.time_of(nodes.user.wait_for_peer("nobody").then([](const PeerInfo& /*peer*/) {})) ==
        3s);
  const auto counter = nodes.user.create<&objects::late_counter>("owner", 1);
  nodes.world.run_for(4s);
  CHECK(outcome(counter.ready()).code() == ErrorCode::timed_out);

  CHECK_THROWS_AS(nodes.user.set_call_timeout(0s), InvalidArgument);
  CHECK_THROWS_AS(nodes.user.set_call_timeout(-1s), InvalidArgument);
  nodes.user.set_call_timeout(kNoTimeout);
  Future<void> patient = nodes.user.call<void()>("owner", "never");
  nodes.world.run_for(1h);
  CHECK_FALSE(patient.ready());
}

}  // namespace rref_time_outs_test
}  // namespace batchrpc
