#include "batchrpc/batch/batcher.hpp"

#include <catch2/catch.hpp>
#include <optional>
#include <vector>

#include "batch/batching.hpp"

namespace batchrpc {
namespace all_of_test {

using namespace std::chrono_literals;
using test::Batches;
using test::Batching;
using test::doubled;
using test::HeldBatching;
using test::outcome;

/// A batcher that waits for the peers a, b and c, which call it.
struct Observed {
  explicit Observed(BatchOptions options) {
    options.all_of = {"a", "b", "c"};
    batcher.emplace(std::move(options), [this](std::vector<int> xs) {
      batches.push_back(xs);
      times.push_back(world.time());
      return doubled(std::move(xs));
    });
    root.expose("double", *batcher);
  }
  Future<int> call(const Node& node, int x) {
    auto future = node.call<int(int)>("root", "double", x);
    world.run_for(0s);
    return future;
  }

  test::VirtualWorld world;
  Node root = world.root();
  std::optional<Batcher<int(int)>> batcher;
  Batches batches;
  std::vector<Duration> times;
  Node a = world.join("a");
  Node b = world.join("b");
  Node c = world.join("c");
};

TEST_CASE("a batch of all_of starts when each of them has a row in it") {
  Observed o({});
  auto first = o.call(o.a, 1);
  auto second = o.call(o.b, 2);
  auto again = o.call(o.a, 3);  // a second row of one of them does not stand for another
  o.world.run_for(30s);
  CHECK(o.batches.empty());
  auto third = o.call(o.c, 4);
  CHECK(third.get() == 8);
  CHECK(first.get() == 2);
  CHECK(second.get() == 4);
  CHECK(again.get() == 6);
  CHECK(o.batches == Batches{{1, 2, 3, 4}});
}

TEST_CASE("max_wait ends the waiting for all_of") {
  Observed o({.max_wait = 2ms});
  const Duration start = o.world.time();
  auto row = o.call(o.a, 1);
  CHECK(row.get() == 2);
  CHECK(o.times == std::vector<Duration>{start + 2ms});
  // And a complete one does not wait.
  auto first = o.call(o.a, 1);
  auto second = o.call(o.b, 2);
  o.world.run_for(1ms);
  auto third = o.call(o.c, 3);
  CHECK(o.batches.size() == 2);
}

TEST_CASE("max_size ends the waiting for all_of as well") {
  Observed o({.max_size = 3});
  auto first = o.call(o.a, 1);
  auto second = o.call(o.a, 2);
  CHECK(o.batches.empty());
  auto third = o.call(o.a, 3);
  CHECK(third.get() == 6);
  CHECK(o.batches == Batches{{1, 2, 3}});
}

TEST_CASE("a peer that dies is not waited for, from the moment when that is noticed") {
  Observed o({});
  auto first = o.call(o.a, 1);
  auto second = o.call(o.b, 2);
  o.world.run_for(1s);
  CHECK(o.batches.empty());
  o.world.kill("c");
  o.world.run_for(0s);
  CHECK(o.batches == Batches{{1, 2}});
  CHECK(first.get() == 2);
  // Nor by the next batch.
  auto third = o.call(o.a, 3);
  auto fourth = o.call(o.b, 4);
  CHECK(third.get() == 6);
}

TEST_CASE("a peer that leaves in order, and one that falls silent, are not waited for either") {
  {
    Observed o({});
    auto first = o.call(o.a, 1);
    auto second = o.call(o.b, 2);
    o.c.shutdown(0s);
    o.world.run_for(0s);
    CHECK(o.batches == Batches{{1, 2}});
  }
  Observed o({});
  auto first = o.call(o.a, 1);
  auto second = o.call(o.b, 2);
  const Duration silent = o.world.time();
  o.world.network->isolate("c");
  o.world.run_for(20s);
  CHECK(o.batches == Batches{{1, 2}});
  REQUIRE(o.times.size() == 1);
  CHECK(o.times[0] - silent <= 6s);
}

TEST_CASE("a call to a peer that is gone does not make batches wait for it again") {
  Observed o({});
  o.world.network->isolate("c");
  o.world.run_for(20s);
  std::optional<Result<int>> lost;
  o.root.call<int(int)>("c", "anything", 1).then([&lost](const Result<int>& r) { lost = r; });
  auto first = o.call(o.a, 1);
  auto second = o.call(o.b, 2);
  CHECK(o.batches == Batches{{1, 2}});
  o.world.run_for(20s);
  REQUIRE(lost);
  CHECK(lost->code() == ErrorCode::not_sent);
}

TEST_CASE("a peer of all_of that has never joined is not waited for, until it joins") {
  test::VirtualWorld world;
  const Node root = world.root();
  Batches batches;
  Batcher<int(int)> batcher({.all_of = {"a", "late"}}, [&](std::vector<int> xs) {
    batches.push_back(xs);
    return doubled(std::move(xs));
  });
  root.expose("double", batcher);
  const Node a = world.join("a");
  CHECK(a.call<int(int)>("root", "double", 1).get() == 2);
  const Node late = world.join("late");
  auto first = a.call<int(int)>("root", "double", 3);
  world.run_for(30s);
  CHECK(batches.size() == 1);
  auto second = late.call<int(int)>("root", "double", 4);
  CHECK(second.get() == 8);
  CHECK(first.get() == 6);
}

TEST_CASE("a row of a peer that died while it waited is dropped, and counted") {
  Observed o({});
  auto first = o.call(o.c, 1);
  o.world.kill("c");
  o.world.run_for(0s);
  auto second = o.call(o.a, 2);
  auto third = o.call(o.b, 3);
  CHECK(third.get() == 6);
  CHECK(second.get() == 4);
  CHECK(o.batches == Batches{{2, 3}});
  CHECK(o.batcher->statistics().left == 1);
}

TEST_CASE("a group may be changed while a batch waits for it") {
  HeldBatching b({.all_of = {"a", "b"}});
  const Node a = b.world.join("a");
  const Node c = b.world.join("b");
  b.call(a, 1);
  CHECK(b.batches.empty());
  b.batcher.set_options({.all_of = {"a"}});
  b.world.run_for(0s);
  CHECK(b.batches == Batches{{1}});
  b.answer(0);
  b.batcher.set_options({.all_of = {"a", "nobody"}});
  b.call(a, 2);
  CHECK(b.batches == Batches{{1}, {2}});
}

TEST_CASE("a group that grows while it runs waits for the new member from then on") {
  HeldBatching b({.all_of = {"first"}});
  const Node first = b.world.join("first");
  const Node second = b.world.join("second");
  b.call(first, 1);
  CHECK(b.batches == Batches{{1}});
  b.answer(0);
  b.call(second, 2);  // goes along
  CHECK(b.batches.size() == 1);
  b.batcher.set_options({.all_of = {"first", "second"}});  // counts what waits
  b.call(first, 3);
  CHECK(b.batches == Batches{{1}, {2, 3}});
  b.answer(1);
  b.call(first, 4);
  CHECK(b.batches.size() == 2);
  b.call(second, 5);
  CHECK(b.batches.back() == std::vector<int>{4, 5});
}

TEST_CASE("who is named before the batcher is exposed, or joins later, is waited for") {
  test::VirtualWorld world;
  const Node root = world.root();
  Batches batches;
  const Batcher<int(int)> batcher({.all_of = {"first", "late"}}, [&](std::vector<int> xs) {
    batches.push_back(xs);
    return xs;
  });
  root.expose("f", batcher);
  const Node first = world.join("first");
  CHECK(first.call<int(int)>("root", "f", 1).get() == 1);  // the other one is not there yet
  const Node late = world.join("late");
  auto waits = first.call<int(int)>("root", "f", 2);
  world.run_for(1s);
  CHECK_FALSE(waits.ready());
  CHECK(late.call<int(int)>("root", "f", 3).get() == 3);
  CHECK(batches == Batches{{1}, {2, 3}});
}

TEST_CASE("a group that names the node itself waits for a row of its process") {
  HeldBatching b({.all_of = {"a", "root"}});
  const Node a = b.world.join("a");
  b.call(a, 1);
  CHECK(b.batches.empty());
  b.add(2);
  b.world.run_for(0s);
  CHECK(b.batches == Batches{{1, 2}});
}

TEST_CASE("a group of a full world must be of its nodes") {
  const auto world = std::make_shared<VirtualLoop>(1);
  const auto network = InprocNetwork::make(1);
  const auto options = [&](std::string name, int rank) {
    NodeOptions made;
    made.name = std::move(name);
    made.rank = rank;
    made.world_size = 2;
    made.join = "inproc://world";
    made.simulation.loop = world;
    made.transports = {inproc_transport(network)};
    return made;
  };
  auto starting = Node::start(options("agent", 0));
  const Node observer(options("observer1", 1));
  const Node agent = std::move(starting).get();
  const Batcher<int(int)> good({.all_of = {"observer1", "agent"}}, doubled);
  agent.expose("good", good);
  const Batcher<int(int)> bad({.all_of = {"observer2"}}, doubled);
  CHECK_THROWS_WITH(agent.expose("bad", bad),
                    Catch::Contains("BatchOptions::all_of") && Catch::Contains("'observer2'"));
  CHECK_THROWS_WITH(good.set_options({.all_of = {"observer2"}}), Catch::Contains("'observer2'"));
}

TEST_CASE("all_of: a call of a peer that was gone before the batcher was exposed never runs") {
  Batches batches;
  test::VirtualWorld world;
  auto options = world.options("root");
  options.expose_within = 60s;
  const Node root(options);
  const Node gone = world.join("gone");
  const Node other = world.join("other");
  auto waits = gone.call<int(int)>("root", "double", 1);
  world.run_for(1s);
  world.kill("gone");
  world.run_for(1s);
  const Batcher<int(int)> batcher({.all_of = {"gone", "other"}}, [&](std::vector<int> xs) {
    batches.push_back(xs);
    return doubled(std::move(xs));
  });
  root.expose("double", batcher);
  world.run_for(1s);
  for (const int x : {2, 3}) {
    auto row = other.call<int(int)>("root", "double", x);
    world.run_for(1s);
    REQUIRE(row.ready());
  }
  CHECK(batches == Batches{{2}, {3}});
  CHECK(batcher.statistics().rows == 2);  // it was forgotten before there was a batcher
}

TEST_CASE("when every member has a row, those of all keys start, also beside a full batch") {
  HeldBatching b({.max_size = 2, .all_of = {"a", "b"}}, {.key = [](int x) { return x % 2; }});
  const Node a = b.world.join("a");
  const Node c = b.world.join("b");
  b.call(a, 1);
  b.call(c, 3);
  b.call(a, 5);
  b.call(a, 7);
  b.call(c, 2);
  for (std::size_t i = 0; i < 3; ++i) {
    REQUIRE(b.batches.size() > i);
    b.answer(i);
  }
  CHECK(b.batches == Batches{{1, 3}, {5, 7}, {2}});
  CHECK(b.batcher.statistics().reasons[static_cast<std::size_t>(BatchReason::size)] == 2);
  CHECK(b.batcher.statistics().reasons[static_cast<std::size_t>(BatchReason::all)] == 1);
}

}  // namespace all_of_test
}  // namespace batchrpc
