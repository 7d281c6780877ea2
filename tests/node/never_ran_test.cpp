#include <array>
#include <catch2/catch.hpp>

#include "batchrpc/batchrpc.hpp"
#include "node/virtual_world.hpp"

// may_have_run() == false is a promise: what it is said of does not run later either.

namespace never_ran {
/// Counts.
class Tally {
 public:
  int add() { return ++count_; }
  static inline int made = 0;
  Tally() { ++made; }

 private:
  int count_ = 0;
};
}  // namespace never_ran

namespace batchrpc {
namespace never_ran_test {

using namespace std::chrono_literals;
using never_ran::Tally;
using test::outcome;
using test::VirtualWorld;

struct World : VirtualWorld {
  Node root_node = root();
  Node a = join("a");
  Node b = join("b");
  int ran = 0;

  World() {
    b.expose("count", [this](const Bytes& /*ballast*/) { return ++ran; });
    b.expose_class<Tally()>();
    b.expose<&Tally::add>();
    Tally::made = 0;
  }
  Future<int> count(Duration timeout, std::size_t ballast = 1) {
    return a.peer("b")
        .with({.timeout = timeout})
        .call<int(Bytes)>("count", Bytes::allocate(ballast));
  }
  /// Calls that surely did not run, of those that have ended.
  static int never(std::vector<Future<int>>& calls) {
    int count = 0;
    for (auto& call : calls) {
      if (!call.ready()) continue;
      const auto result = outcome(std::move(call));
      if (!result && !test::may_have_run(result.error())) ++count;
    }
    return count;
  }
};

TEST_CASE("calls that timed out before their peer was reached do not run when it is") {
  World world;
  world.network->partition("a", "b");
  std::vector<Future<int>> calls;
  for (const std::size_t ballast : std::array<std::size_t, 3>{1, 5000, 300'000})
    calls.push_back(world.count(1s, ballast));
  const RRef<Tally> tally = world.a.create<Tally>("b");
  auto added = tally.with({.timeout = 1s}).call<&Tally::add>();
  world.run_for(1500ms);
  CHECK(World::never(calls) == 3);
  CHECK_FALSE(test::may_have_run(outcome(std::move(added)).error()));
  world.network->heal("a", "b");
  auto later = world.count(10s, 300'000);
  CHECK(later.get() == 1);
  CHECK(tally.call<&Tally::add>().get() == 1);
  CHECK(Tally::made == 1);
}

TEST_CASE("calls that timed out behind a connection that was stuck do not run when it goes on") {
  World world;
  world.network->set_link({.capacity = 4096});
  CHECK(world.count(1s).get() == 1);
  world.network->partition("a", "b");
  auto in_the_way = world.count(10s, 1 << 20);
  world.run_for(1ms);
  std::vector<Future<int>> calls;
  for (const std::size_t ballast : std::array<std::size_t, 4>{1, 5000, 300'000, 1})
    calls.push_back(world.count(1s, ballast));
  world.run_for(1500ms);
  CHECK(World::never(calls) == 4);
  world.network->heal("a", "b");
  CHECK(in_the_way.get() == 2);
  CHECK(world.count(10s).get() == 3);
}

TEST_CASE("a handle in a call that timed out unsent is let go at once") {
  World world;
  world.b.expose("take", [](const RRef<Tally>&) {});
  world.network->partition("a", "b");
  auto object = std::make_shared<Tally>();
  const std::weak_ptr<Tally> alive = object;
  auto call = world.a.peer("b")
                  .with({.timeout = 1s})
                  .call<void(RRef<Tally>)>("take", world.a.own(std::move(object)));
  world.run_for(900ms);
  CHECK_FALSE(alive.expired());
  world.run_for(200ms);
  CHECK_FALSE(test::may_have_run(outcome(std::move(call)).error()));
  CHECK(alive.expired());
}

TEST_CASE("of calls to a peer that is lost by its silence, those that were not sent never run") {
  VirtualWorld world;
  const Node root = world.root();
  NodeOptions patient = world.joining("b");
  patient.liveness.dead_after = 1h;
  const Node b(patient);
  const Node a = world.join("a");
  int ran = 0;
  b.expose("count", [&ran] { return ++ran; });
  CHECK(a.call<int()>("b", "count").get() == 1);
  ran = 0;
  world.network->isolate("b");
  std::vector<Future<int>> calls;
  // Some of them in the very turn of the loop in which the verdict is made.
  for (int i = 0; i < 300; ++i) {
    world.loop->schedule(world.loop->now() + i * 25ms, [&] {
      calls.push_back(a.peer("b").with({.timeout = 1h}).call<int()>("count"));
    });
  }
  world.run_for(9s);
  const int made = static_cast<int>(calls.size());
  int may = 0;
  std::vector<Future<int>> open;
  for (auto& call : calls) {
    if (!call.ready()) {
      open.push_back(std::move(call));
      continue;
    }
    const auto result = outcome(std::move(call));
    if (test::may_have_run(result.error())) ++may;
  }
  CHECK(may < made);
  world.network->rejoin("b");
  world.run_for(60s);
  int answered = 0;
  for (auto& call : open) {
    if (call.ready() && outcome(std::move(call))) ++answered;
  }
  CHECK(ran <= may + answered);
}

}  // namespace never_ran_test
}  // namespace batchrpc
