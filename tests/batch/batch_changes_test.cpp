#include <catch2/catch.hpp>
#include <deque>
#include <memory>
#include <optional>

#include "batch/batching.hpp"
#include "batchrpc/batch/batcher.hpp"

// What changes while rows wait or a batch is about to start: room, settings, the mutex, the end.
namespace batchrpc {
namespace batch_changes_test {

using namespace std::chrono_literals;
using test::Batches;
using test::Batching;
using test::HeldBatching;
using test::outcome;
using test::Summing;

TEST_CASE("a flush during a pause does nothing, also when the pause is over") {
  HeldBatching b({.max_wait = 1h});
  b.batcher.pause();
  b.add(1);
  b.batcher.flush();
  b.batcher.resume();
  b.world.run_for(1min);
  CHECK(b.batches.empty());
  b.batcher.flush();
  b.world.run_for(0s);
  CHECK(b.batches == Batches{{1}});
  b.answer(0);
}

TEST_CASE("held rows come in when a larger call has given way") {
  HeldBatching b({.max_size = 4, .max_queue = 8, .on_full = OnFull::wait});
  const Node hog = b.world.join("hog");
  const Node other = b.world.join("other");
  b.batcher.pause();
  auto stays = b.batcher.many()({1, 2, 3, 4});
  auto goes = b.batcher.many()({11, 12, 13, 14});
  b.call(hog, 5);
  CHECK(b.batcher.statistics().held == 1);
  b.batcher.set_options({.max_size = 4, .max_queue = 8});
  b.call(other, 6);
  REQUIRE(goes.ready());
  CHECK(outcome(std::move(goes)).code() == ErrorCode::overloaded);
  CHECK(b.batcher.statistics().queued == 6);
  CHECK(b.batcher.statistics().held == 0);
  b.batcher.close();
}

TEST_CASE("held rows come in when a row cannot be accumulated") {
  Summing s({.max_size = 2, .min_size = 2, .max_queue = 2, .on_full = OnFull::wait});
  s.batcher.pause();
  auto first = s.batcher(1);
  auto bad = s.batcher(-1);
  auto held = s.batcher(2);
  s.batcher.resume();
  s.world.run_for(0s);
  CHECK_FALSE(outcome(std::move(bad)));
  REQUIRE(held.ready());
  CHECK(held.get() == 3);
  CHECK(first.get() == 3);
}

TEST_CASE("a row that expires while others are accumulated never runs") {
  Summing s({.min_size = 3});
  s.on_row = [&s] { s.world.loop->advance(10ms); };  // a slow one, for which its loop waits
  auto first = s.batcher(1);
  auto expires = s.batcher.with({.timeout = 5ms})(100);
  auto second = s.batcher(2);
  auto third = s.batcher(3);
  CHECK(outcome(std::move(expires)).code() == ErrorCode::timed_out);
  CHECK(third.get() == 6);
}

TEST_CASE("rows are accumulated on when a batch that was about to start has lost its rows") {
  const auto mutex = std::make_shared<AsyncMutex>();
  Summing s({.max_size = 4}, {.exclusive = mutex});
  std::optional<AsyncMutex::Guard> guard = mutex->try_lock();
  s.batcher.set_options({.max_size = 4, .min_size = 2, .order_by_peer = true});
  std::stop_source stop;
  auto first = s.batcher(-1);
  auto second = s.batcher.with({.stop = stop.get_token()})(2);  // the start waits
  s.batcher.set_options({.max_size = 4, .min_size = 2});
  stop.request_stop();
  guard.reset();
  s.world.run_for(0s);
  REQUIRE(first.ready());
  CHECK_FALSE(outcome(std::move(first)));
}

TEST_CASE("a smaller parallelism counts also for batches that are about to start") {
  HeldBatching b({.max_size = 1, .parallelism = 2});
  b.add(1);
  b.add(2);
  b.batcher.set_options({.max_size = 1});
  b.world.run_for(0s);
  CHECK(b.batches == Batches{{1}});
  b.answer(0);
  CHECK(b.batches == Batches{{1}, {2}});
  b.answer(1);
}

TEST_CASE("a lock that comes when a batcher runs without it is refused, and changes nothing",
          "[threads]") {
  const auto mutex = std::make_shared<AsyncMutex>();
  const std::optional<AsyncMutex::Guard> guard = mutex->try_lock();
  HeldBatching b({});
  CHECK_THROWS_WITH(b.node.expose("again", b.batcher, {.exclusive = mutex}),
                    Catch::Contains("'again'") &&
                        Catch::Contains("when you expose the batcher for the first time"));
  b.add(1);
  b.world.run_for(0s);
  CHECK(b.batches == Batches{{1}});
  b.answer(0);

  const Batcher<int(int)> early({}, test::doubled);
  CHECK(early(1).get() == 2);  // on a thread of its own
  CHECK_THROWS_WITH(b.node.expose("early", early, {.exclusive = mutex}),
                    Catch::Contains("'early'"));
  b.node.expose("early", early);
}

TEST_CASE("a batcher that has a lock is exposed under other names with the same one, or none") {
  const auto mutex = std::make_shared<AsyncMutex>();
  HeldBatching b({}, {}, {.exclusive = mutex});
  CHECK_THROWS_AS(
      b.node.expose("other", b.batcher.many(), {.exclusive = std::make_shared<AsyncMutex>()}),
      InvalidArgument);
  b.node.expose("same", b.batcher, {.exclusive = mutex});
  b.node.expose("many", b.batcher.many());
  std::optional<AsyncMutex::Guard> guard = mutex->try_lock();
  auto rows = b.batcher.many()({1, 2});
  b.world.run_for(1s);
  CHECK(b.batches.empty());
  guard.reset();
  b.world.run_for(0s);
  CHECK(b.batches == Batches{{1, 2}});
  b.answer(0);
  CHECK(rows.get() == std::vector<int>{2, 4});
}

TEST_CASE("a batcher that has a lock runs one batch at a time") {
  const auto mutex = std::make_shared<AsyncMutex>();
  const auto of_parallelism =
      Catch::Contains("parallelism must be 1 with ExposeOptions::exclusive");
  CHECK_THROWS_WITH(HeldBatching({.parallelism = 2}, {}, {.exclusive = mutex}), of_parallelism);
  const HeldBatching b({}, {}, {.exclusive = mutex});
  CHECK_THROWS_WITH(b.batcher.set_options({.parallelism = 2}), of_parallelism);
  CHECK(b.batcher.options().parallelism == 1);
}

TEST_CASE("a batcher is closed when its last row is gone, whoever has the mutex") {
  const auto mutex = std::make_shared<AsyncMutex>();
  const std::optional<AsyncMutex::Guard> guard = mutex->try_lock();
  HeldBatching b({}, {}, {.exclusive = mutex});
  auto row = b.batcher.with({.timeout = 1s})(1);
  auto closed = b.batcher.close(BatchClose::drain);
  b.world.run_for(999ms);
  CHECK_FALSE(closed.ready());
  b.world.run_for(1ms);
  CHECK(outcome(std::move(row)).code() == ErrorCode::timed_out);
  CHECK(closed.ready());
}

TEST_CASE("a batcher is closed after its rows have failed") {
  const auto mutex = std::make_shared<AsyncMutex>();
  const std::optional<AsyncMutex::Guard> guard = mutex->try_lock();
  HeldBatching b({}, {}, {.exclusive = mutex});
  b.add(1);
  bool failed_before = false;
  b.batcher.close(BatchClose::drain).then([&] { failed_before = b.rows[0].ready(); });
  CHECK(b.batcher.close(BatchClose::fail).ready());
  CHECK(failed_before);

  HeldBatching late({});
  auto row = late.batcher.with({.timeout = 5ms})(1);  // its batch is about to start
  failed_before = false;
  late.batcher.close(BatchClose::drain).then([&] { failed_before = row.ready(); });
  late.world.loop->advance(10ms);
  late.world.run_for(0s);
  CHECK(failed_before);
}

TEST_CASE("a batcher is closed after the callbacks of its rows") {
  const auto mutex = std::make_shared<AsyncMutex>();
  const std::optional<AsyncMutex::Guard> guard = mutex->try_lock();
  Future<void> closed;
  bool was_early = true;
  HeldBatching b({}, {}, {.exclusive = mutex});
  b.batcher.with({.timeout = 1s})(1).then([&](const Result<int>& /*row*/) {
    closed = b.batcher.close();
    was_early = closed.ready();
  });
  b.world.run_for(1s);
  CHECK_FALSE(was_early);
  CHECK(closed.ready());
}

struct Closing {
  void accumulate(int /*x*/) { (*batcher)->close(BatchClose::fail); }
  int finish() { return 0; }
  std::optional<Batcher<int(int)>>* batcher;
};

TEST_CASE("a row that is being accumulated when a drain is cut short fails as well") {
  test::VirtualWorld world;
  const Node node = world.root();
  std::optional<Batcher<int(int)>> batcher;
  batcher.emplace(BatchOptions{}, reduce(Closing{&batcher}));
  detail::HostedAccess::exposed_on(*batcher, detail::NodeAccess::host(node));
  auto row = (*batcher)(1);
  auto closed = batcher->close(BatchClose::drain);
  world.run_for(0s);
  CHECK(outcome(std::move(row)).code() == ErrorCode::shut_down);
  CHECK(closed.ready());
}

TEST_CASE("while a reducer's batch is about to start, no row is accumulated beside it") {
  const auto tasks = std::make_shared<test::KeptTasks>();
  Summing s({.executor = tasks});
  auto first = s.batcher(1);
  tasks->run_next();  // is accumulated
  auto second = s.batcher(2);
  CHECK(tasks->waiting.size() == 1);
  while (!tasks->waiting.empty())
    tasks->run_next();
  CHECK(first.get() == 3);
  CHECK(second.get() == 3);
}

TEST_CASE("a group does not wait for one that is gone, though its row was accumulated") {
  Summing s({.max_wait = 1h});
  Node first = s.world.join("first");
  const Node second = s.world.join("second");
  const auto call = [&](const Node& node, int x) {
    auto row = node.call<int(int)>("root", "sum", x);
    s.world.run_for(0s);
    return row;
  };
  auto kept = call(first, 1);
  s.world.kill("first");
  s.world.run_for(0s);
  s.batcher.set_options({.all_of = {"first", "second"}});
  auto row = call(second, 2);
  REQUIRE(row.ready());
  CHECK(row.get() == 3);  // the row of the dead stays part of its batch
  auto next = call(second, 4);
  REQUIRE(next.ready());
  CHECK(next.get() == 4);
}

}  // namespace batch_changes_test
}  // namespace batchrpc
