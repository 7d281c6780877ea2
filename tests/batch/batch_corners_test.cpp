#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "batch/batching.hpp"
#include "batchrpc/batch/batcher.hpp"

// What once went wrong where two things meet.
namespace batchrpc {
namespace batch_corners_test {

using namespace std::chrono_literals;
using test::Batches;
using test::doubled;
using test::HeldBatching;
using test::outcome;
using test::Summing;

TEST_CASE("rows that were accumulated are one batch, though max_size has shrunk since") {
  Summing s({.max_size = 10, .max_wait = 1h});
  std::vector<Future<int>> rows;
  for (int i = 1; i <= 4; ++i)
    rows.push_back(s.add(i));
  s.batcher.set_options({.max_size = 2, .max_wait = 1h});
  s.world.run_for(0s);
  for (auto& row : rows)
    CHECK(row.get() == 10);
  CHECK(s.batcher.statistics().batches == 1);
}

TEST_CASE("a reducer whose begin throws begins again with the next row") {
  bool fails = false;
  Summing s({.min_size = 2});
  s.on_begin = [&fails] {
    if (std::exchange(fails, false)) throw std::runtime_error("begin");
  };
  auto first = s.add(1);
  auto second = s.add(2);
  CHECK(second.get() == 3);
  fails = true;
  CHECK(outcome(s.add(10)).message() == "begin");
  auto third = s.add(20);
  auto fourth = s.add(30);
  CHECK(third.get() == 50);
}

TEST_CASE("a call of many rows that cannot be accumulated is counted with all of them") {
  Summing s({.min_size = 9});
  auto rows = s.batcher.many()({-1, 1, 2});
  s.world.run_for(0s);
  CHECK_FALSE(outcome(std::move(rows)));
  CHECK(s.batcher.statistics().failed == 3);
}

TEST_CASE("a reducer has no latency target") {
  CHECK_THROWS_WITH(Summing({.latency_target = {.latency = 1ms}}),
                    Catch::Contains("latency_target"));
}

TEST_CASE("a reducer's row that expires while the exclusive mutex is not to be had never runs") {
  const auto mutex = std::make_shared<AsyncMutex>();
  Summing s({.min_size = 2}, {.exclusive = mutex});
  std::optional<AsyncMutex::Guard> guard = mutex->try_lock();
  auto expires = s.batcher.with({.timeout = 1s})(100);
  s.world.run_for(1s);
  REQUIRE(expires.ready());
  CHECK(outcome(std::move(expires)).code() == ErrorCode::timed_out);
  guard.reset();
  auto first = s.add(1);
  auto second = s.add(2);
  CHECK(first.get() == 3);
}

TEST_CASE("who waits for the exclusive mutex is let in without the batcher's lock") {
  const auto mutex = std::make_shared<AsyncMutex>();
  std::optional<AsyncMutex::Guard> guard = mutex->try_lock();
  int asked = 0;
  {
    Summing s({.min_size = 2}, {.exclusive = mutex});
    auto row = s.add(1);
    mutex->lock().then([&](const AsyncMutex::Guard&) {
      (void)s.batcher.statistics();
      ++asked;
    });
    guard.reset();
    s.world.run_for(0s);
    CHECK(asked == 1);
  }
  guard = mutex->try_lock();
  HeldBatching b({}, {}, {.exclusive = mutex});
  b.add(1);
  mutex->lock().then([&](const AsyncMutex::Guard&) {
    (void)b.batcher.statistics();
    ++asked;
  });
  b.batcher.pause();
  guard.reset();
  b.world.run_for(0s);
  CHECK(asked == 2);
}

/// Takes tasks, and drops them.
struct Dropping : Executor {
  void post(Task task) override { const Task dropped = std::move(task); }
};

/// Takes no tasks.
struct Refusing : Executor {
  void post(Task /*task*/) override { throw std::runtime_error("no more tasks"); }
};

TEST_CASE(
    "a batcher whose executor drops its tasks, or throws, fails its rows, and can be closed") {
  test::VirtualWorld world;
  const Node node = world.root();
  std::shared_ptr<Executor> executor;
  SECTION("it drops them") { executor = std::make_shared<Dropping>(); }
  SECTION("it throws") { executor = std::make_shared<Refusing>(); }
  const Batcher<int(int)> batcher({.executor = executor}, doubled);
  node.expose("f", batcher);
  CHECK(outcome(batcher(1)).code() == ErrorCode::shut_down);
  CHECK(batcher.close().ready());
}

TEST_CASE("closing does not wait for who has the exclusive mutex when nothing waits") {
  const auto mutex = std::make_shared<AsyncMutex>();
  HeldBatching b({}, {}, {.exclusive = mutex});
  std::optional<AsyncMutex::Guard> guard = mutex->try_lock();
  b.add(1);
  CHECK(b.batcher.close(BatchClose::fail).ready());
  guard.reset();
  b.world.run_for(0s);
}

TEST_CASE("when every member of a group has a row, those of all keys start") {
  HeldBatching b({.all_of = {"a", "b"}}, {.key = [](int x) { return x % 2; }});
  const Node a = b.world.join("a");
  const Node c = b.world.join("b");
  b.call(a, 1);
  CHECK(b.batches.empty());
  b.call(c, 2);
  b.answer(0);
  b.answer(1);
  CHECK(b.batches == Batches{{1}, {2}});
}

TEST_CASE(
    "a row brought in the name of a caller that is gone never runs, and nobody waits for it") {
  HeldBatching b({.all_of = {"a", "b"}});
  const Node a = b.world.join("a");
  const Node c = b.world.join("b");
  std::optional<CallContext> kept;
  b.node.expose("keep", [&](int x) {
    kept.emplace(*CallContext::current());
    return x;
  });
  CHECK(a.call<int(int)>("root", "keep", 5).get() == 5);
  b.world.kill("a");
  b.world.run_for(0s);
  {
    const detail::ContextScope scope(*kept);
    CHECK(outcome(b.batcher(7)).code() == ErrorCode::peer_lost);
  }
  b.call(c, 2);
  CHECK(b.batches == Batches{{2}});
}

/// Runs a task as part of whatever call it is that posts it, as an Executor should not.
struct Inline : Executor {
  void post(Task task) override { task(); }
};

TEST_CASE("a handler is no part of a call, whatever its executor does") {
  test::VirtualWorld world;
  const Node node = world.root();
  const Node peer = world.join("peer");
  bool in_call = true;
  const Batcher<int(int)> batcher({.executor = std::make_shared<Inline>()},
                                  [&](std::vector<int> xs) {
                                    in_call = CallContext::current() != nullptr;
                                    return xs;
                                  });
  node.expose("f", batcher);
  CHECK(peer.call<int(int)>("root", "f", 1).get() == 1);
  CHECK_FALSE(in_call);
}

}  // namespace batch_corners_test
}  // namespace batchrpc
