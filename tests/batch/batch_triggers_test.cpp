#include "batchrpc/batch/batcher.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>

#include "batch/batching.hpp"
#include "batchrpc/transport/socket_loop.hpp"

namespace batchrpc {
namespace batch_triggers_test {

using namespace std::chrono_literals;
using test::Batches;
using test::Batching;
using test::doubled;
using test::outcome;

TEST_CASE("each caller gets its own row of one batch") {
  Batching b({});
  b.add({1, 2, 3});
  for (int i = 0; i < 3; ++i)
    CHECK(b.rows[static_cast<std::size_t>(i)].get() == 2 * (i + 1));
  CHECK(b.batches == Batches{{1, 2, 3}});
}

TEST_CASE("with no options a lone row waits for nobody") {
  Batching b({});
  const Duration start = b.world.time();
  CHECK(b.batcher(4).get() == 8);
  CHECK(b.world.time() == start);
}

TEST_CASE("what gathers while the handler is busy goes together into the next batch") {
  test::VirtualWorld world;
  const Node node = world.root();
  Batches batches;
  std::vector<Promise<std::vector<int>>> running;
  Batcher<int(int)> batcher({}, [&](std::vector<int> xs) {
    batches.push_back(std::move(xs));
    running.emplace_back();
    return running.back().get_future();
  });
  node.expose("f", batcher);
  auto first = batcher(1);
  world.run_for(1ms);
  CHECK(batches == Batches{{1}});
  auto second = batcher(2);
  auto third = batcher(3);
  world.run_for(1h);
  CHECK(batches.size() == 1);  // never two at once
  running[0].set_value({10});
  CHECK(first.get() == 10);
  world.run_for(0s);
  CHECK(batches == Batches{{1}, {2, 3}});
  running[1].set_value({20, 30});
  CHECK(second.get() == 20);
  CHECK(third.get() == 30);
}

TEST_CASE("max_size bounds a batch, and rows keep their order") {
  Batching b({.max_size = 4});
  b.add({1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  b.world.run_for(1ms);
  CHECK(b.batches == Batches{{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10}});
}

TEST_CASE("a full batch starts at once, however long it might wait") {
  Batching b({.max_size = 3, .max_wait = 1h});
  const Duration start = b.world.time();
  b.add({1, 2});
  b.world.run_for(10ms);
  CHECK(b.batches.empty());
  b.add({3});
  b.world.run_for(0s);
  CHECK(b.batches == Batches{{1, 2, 3}});
  CHECK(b.times[0] == start + 10ms);
}

TEST_CASE("max_wait is counted from the arrival of the first row, to the microsecond") {
  Batching b({.max_wait = 500us});
  const Duration start = b.world.time();
  b.add({1});
  b.world.run_for(200us);
  b.add({2});
  b.world.run_for(299us);
  b.add({3});
  CHECK(b.batches.empty());
  b.world.run_for(1us);
  CHECK(b.batches == Batches{{1, 2, 3}});
  CHECK(b.times[0] == start + 500us);
}

TEST_CASE("each batch's wait is its own") {
  Batching b({.max_wait = 500us});
  const Duration start = b.world.time();
  b.add({1});
  b.world.run_for(500us);
  b.world.run_for(123us);
  b.add({2});
  b.world.run_for(1s);
  CHECK(b.times == std::vector<Duration>{start + 500us, start + 1123us});
}

TEST_CASE("rows beyond a full batch wait from their own arrival") {
  Batching b({.max_size = 2, .max_wait = 500us});
  const Duration start = b.world.time();
  b.add({1});
  b.world.run_for(100us);
  b.add({2, 3});  // 1 and 2 go at once
  b.world.run_for(1s);
  CHECK(b.batches == Batches{{1, 2}, {3}});
  CHECK(b.times == std::vector<Duration>{start + 100us, start + 600us});
}

TEST_CASE("time that a row spends while the handler is busy counts") {
  test::VirtualWorld world;
  const Node node = world.root();
  std::vector<Duration> times;
  std::vector<Promise<std::vector<int>>> running;
  Batcher<int(int)> batcher({.max_wait = 500us}, [&](const std::vector<int>&) {
    times.push_back(world.time());
    running.emplace_back();
    return running.back().get_future();
  });
  node.expose("f", batcher);
  const Duration start = world.time();
  auto first = batcher(1);
  world.run_for(600us);
  auto second = batcher(2);  // arrives at 600
  world.run_for(100us);
  running[0].set_value({1});  // idle from 700 on: due at 1100
  world.run_for(1ms);
  running[1].set_value({2});
  auto third = batcher(3);  // arrives at 1700
  world.run_for(1ms);
  REQUIRE(times.size() == 3);
  CHECK(times[0] == start + 500us);
  CHECK(times[1] == start + 1100us);
  CHECK(times[2] == start + 2200us);

  auto fourth = batcher(4);  // arrives at 2700 while the third batch runs
  world.run_for(10ms);
  running[2].set_value({3});  // it has waited for longer than max_wait: now
  world.run_for(0s);
  REQUIRE(times.size() == 4);
  CHECK(times[3] == world.time());
  running[3].set_value({4});
  CHECK(fourth.get() == 4);
}

TEST_CASE("beyond max_queue a row is refused as Overloaded, which surely did not run") {
  test::VirtualWorld world;
  const Node node = world.root();
  std::vector<Promise<std::vector<int>>> running;
  Batcher<int(int)> batcher({.max_size = 2, .max_queue = 3}, [&](const std::vector<int>&) {
    running.emplace_back();
    return running.back().get_future();
  });
  node.expose("f", batcher);
  auto running_row = batcher(0);
  world.run_for(0s);  // taken: not counted any more
  std::vector<Future<int>> waiting;
  for (int i = 1; i <= 3; ++i)
    waiting.push_back(batcher(i));
  const auto refused = outcome(batcher(4));
  REQUIRE_FALSE(refused);
  CHECK(refused.code() == ErrorCode::overloaded);
  CHECK_FALSE(test::may_have_run(refused.error()));
  CHECK_THAT(refused.message(),
             Catch::Contains("3 rows") && Catch::Contains("BatchOptions::max_queue"));
  // There is room again when a batch has begun.
  running[0].set_value({0});
  world.run_for(0s);
  auto fits = batcher(5);
  running[1].set_value({10, 20});
  world.run_for(0s);
  running[2].set_value({30, 50});
  CHECK(fits.get() == 50);
}

TEST_CASE("a peer beyond max_queue is told the same, and when to try again") {
  test::VirtualWorld world;
  const Node node = world.root();
  std::vector<Promise<std::vector<int>>> running;
  Batcher<int(int)> batcher({.max_size = 2, .max_queue = 3}, [&](const std::vector<int>&) {
    running.emplace_back();
    return running.back().get_future();
  });
  node.expose("f", batcher);
  const Node peer = world.join("peer");
  std::vector<Future<int>> rows;
  const auto call = [&] {
    auto row = peer.call<int(int)>("root", "f", 4);
    world.run_for(0s);
    return row;
  };
  rows.push_back(call());
  world.run_for(20ms);
  running[0].set_value({0});  // so that the batcher knows what a batch takes
  for (int i = 0; i <= 3; ++i)
    rows.push_back(call());
  const auto remote = outcome(call());
  REQUIRE_FALSE(remote);
  CHECK(remote.code() == ErrorCode::overloaded);
  CHECK_FALSE(test::may_have_run(remote.error()));
  try {
    std::rethrow_exception(remote.error());
  } catch (const Overloaded& error) {
    CHECK(error.retry_after() == 20ms);
  }
  CHECK_THAT(remote.message(), Catch::Contains("in about 20000 us"));
  batcher.close();
}

TEST_CASE("a batch can be started by hand") {
  Batching b({.max_wait = 1h});
  b.add({1, 2});
  b.world.run_for(1s);
  CHECK(b.batches.empty());
  b.batcher.flush();
  b.world.run_for(0s);
  CHECK(b.batches == Batches{{1, 2}});
  b.batcher.flush();  // nothing there
  b.add({3});
  b.world.run_for(1s);
  CHECK(b.batches.size() == 1);
}

TEST_CASE("a flush while the handler is busy starts the next batch when it is idle") {
  test::VirtualWorld world;
  const Node node = world.root();
  Batches batches;
  std::vector<Promise<std::vector<int>>> running;
  Batcher<int(int)> batcher({.max_wait = 1h}, [&](std::vector<int> xs) {
    batches.push_back(std::move(xs));
    running.emplace_back();
    return running.back().get_future();
  });
  node.expose("f", batcher);
  auto first = batcher(1);
  batcher.flush();
  world.run_for(0s);
  auto second = batcher(2);
  batcher.flush();
  world.run_for(1s);
  CHECK(batches == Batches{{1}});
  running[0].set_value({1});
  world.run_for(0s);
  CHECK(batches == Batches{{1}, {2}});
}

TEST_CASE("options out of range are refused by name", "[threads]") {
  const auto message = &test::refusal_of;
  CHECK(message({}) == "nothing was refused");
  CHECK_THAT(message({.max_size = 0}), Catch::Contains("BatchOptions::max_size"));
  CHECK_THAT(message({.max_wait = -1ns}), Catch::Contains("BatchOptions::max_wait"));
  CHECK_THAT(message({.max_size = 100, .max_queue = 99}),
             Catch::Contains("BatchOptions::max_queue") && Catch::Contains("99") &&
                 Catch::Contains("100"));
  CHECK_THAT(message({.short_handler = true, .executor = SocketLoop::start()}),
             Catch::Contains("short_handler"));
}

TEST_CASE(
    "a short handler runs with the message that completes its batch, not as part of that call") {
  Batches batches;
  bool in_a_call = false;
  std::vector<Future<int>> rows;
  test::VirtualWorld world;
  const Node node = world.root();
  const Node first = world.join("first");
  const Node second = world.join("second");
  const Batcher<int(int)> batcher({.all_of = {"first", "second"}, .short_handler = true},
                                  [&](const std::vector<int>& xs) {
                                    batches.push_back(xs);
                                    in_a_call = in_a_call || CallContext::current() != nullptr;
                                    return test::doubled(xs);
                                  });
  node.expose("double", batcher);
  rows.push_back(first.call<int(int)>("root", "double", 1));
  world.run_for(0s);
  second.expose("call twice",  // whose messages arrive in one piece
                [&] {
                  for (const int x : {11, 12})
                    rows.push_back(second.call<int(int)>("root", "double", x));
                },
                {.short_handler = true});
  node.peer("second").notify<void()>("call twice");
  world.run_for(0s);
  CHECK(batches == Batches{{1, 11}});
  rows.push_back(first.call<int(int)>("root", "double", 2));
  world.run_for(0s);
  CHECK(batches == Batches{{1, 11}, {12, 2}});
  CHECK_FALSE(in_a_call);
  for (auto& row : rows)
    CHECK(row.ready());
}

}  // namespace batch_triggers_test
}  // namespace batchrpc
