#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <thread>

#include "batch/batching.hpp"
#include "batchrpc/batch/batcher.hpp"
#include "batchrpc/transport/socket_loop.hpp"

// What a batcher is told while it runs, and what it tells.
namespace batchrpc {
namespace batch_control_test {

using namespace std::chrono_literals;
using test::Batches;
using test::Batching;
using test::doubled;
using test::HeldBatching;
using test::outcome;

std::uint64_t count_of(const BatchStatistics& statistics, BatchReason reason) {
  return statistics.reasons.at(static_cast<std::size_t>(reason));
}

TEST_CASE("a paused batcher takes rows and starts none, until it is resumed") {
  Batching b({.max_size = 2, .max_wait = 1ms});
  b.batcher.pause();
  b.add({1, 2, 3});
  b.batcher.flush();
  b.world.run_for(1h);
  CHECK(b.batches.empty());
  CHECK(b.batcher.statistics().queued == 3);
  b.batcher.resume();
  b.world.run_for(0s);
  CHECK(b.batches == Batches{{1, 2}, {3}});
  b.batcher.resume();
  b.batcher.pause();
  b.batcher.resume();
}

TEST_CASE("a pause lets a batch that runs finish, and one that was about to start wait") {
  HeldBatching b({});
  b.add(1);
  b.world.run_for(0s);
  b.add(2);
  b.batcher.pause();
  b.answer(0);
  CHECK(b.rows[0].get() == 2);
  CHECK(b.batches.size() == 1);
  b.batcher.resume();
  b.batcher.pause();  // the start is under way, and finds the batcher paused
  b.world.run_for(1s);
  CHECK(b.batches.size() == 1);
  b.batcher.resume();
  b.world.run_for(0s);
  CHECK(b.batches.size() == 2);
}

TEST_CASE("closing may drain: what waits runs at once, and the future tells when all is done") {
  HeldBatching b({.max_size = 2, .max_wait = 1h, .max_queue = 4, .on_full = OnFull::wait});
  for (int x = 1; x <= 5; ++x)
    b.add(x);
  b.world.run_for(0s);
  for (int x = 6; x <= 7; ++x)
    b.add(x);
  auto closed = b.batcher.close(BatchClose::drain);
  CHECK(outcome(b.batcher(8)).code() == ErrorCode::shut_down);
  b.world.run_for(1s);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK_FALSE(closed.ready());
    b.answer(i);
  }
  CHECK(closed.ready());
  CHECK(b.batches == Batches{{1, 2}, {3, 4}, {5, 6}, {7}});
  CHECK(b.rows[6].get() == 14);
}

TEST_CASE("flush() is for rows that are held back, too") {
  HeldBatching b({.max_size = 2, .min_size = 2, .max_queue = 2, .on_full = OnFull::wait});
  b.add(1);
  b.add(2);
  b.world.run_for(0s);
  for (const int x : {3, 4, 5})
    b.add(x);
  CHECK(b.batcher.statistics().held == 1);
  b.batcher.flush();
  b.answer(0);
  b.answer(1);
  b.world.run_for(0s);
  CHECK(b.batches == Batches{{1, 2}, {3, 4}, {5}});
  b.answer(2);
}

TEST_CASE("a paused batcher that is closed to drain runs what it has") {
  Batching b({});
  b.batcher.pause();
  b.add({1, 2});
  auto closed = b.batcher.close(BatchClose::drain);
  closed.get();
  CHECK(b.batches == Batches{{1, 2}});
}

TEST_CASE("closing without draining fails what waits, and waits for what runs") {
  HeldBatching b({.max_size = 1});
  b.add(1);
  b.world.run_for(0s);
  b.add(2);
  auto closed = b.batcher.close();
  CHECK(outcome(std::move(b.rows[1])).code() == ErrorCode::shut_down);
  CHECK_FALSE(closed.ready());
  b.answer(0);
  CHECK(closed.ready());
  CHECK(b.rows[0].get() == 2);
  CHECK(b.batcher.statistics().dropped == 1);
  CHECK(b.batcher.close().ready());
  CHECK(Batcher<int(int)>({}, doubled).close(BatchClose::drain).ready());
}

TEST_CASE("a drain that is under way may be cut short") {
  HeldBatching b({.max_size = 1});
  for (int x = 1; x <= 3; ++x)
    b.add(x);
  b.world.run_for(0s);
  auto drained = b.batcher.close(BatchClose::drain);
  auto closed = b.batcher.close(BatchClose::fail);
  CHECK(outcome(std::move(b.rows[2])).code() == ErrorCode::shut_down);
  b.answer(0);
  CHECK(drained.ready());
  CHECK(closed.ready());
}

TEST_CASE("options that are changed count from the next batch on") {
  HeldBatching b({.max_size = 2});
  b.add(1);
  b.world.run_for(0s);
  for (int x = 2; x <= 9; ++x)
    b.add(x);
  BatchOptions options = b.batcher.options();
  CHECK(options.max_size == 2);
  options.max_size = 4;
  b.batcher.set_options(options);
  b.answer(0);
  b.answer(1);
  options.max_size = 3;
  options.parallelism = 2;
  b.batcher.set_options(options);
  b.world.run_for(0s);
  CHECK(b.batches == Batches{{1}, {2, 3, 4, 5}, {6, 7, 8, 9}});
  b.add(10);
  b.world.run_for(0s);
  CHECK(b.batches.back() == std::vector<int>{10});
}

TEST_CASE("a shorter wait counts at once for rows that wait") {
  Batching b({.max_wait = 1h});
  const Duration start = b.world.time();
  b.add({1});
  b.world.run_for(10ms);
  b.batcher.set_options({.max_wait = 15ms});
  b.world.run_for(1s);
  b.batcher.set_options({});
  b.add({2});
  b.world.run_for(0s);
  CHECK(b.times == std::vector<Duration>{start + 15ms, start + 10ms + 1s});
  b.batcher.set_options({.min_size = 2});
  b.add({3});
  b.world.run_for(1s);
  CHECK(b.batches.size() == 2);
  b.batcher.set_options({});
  b.world.run_for(0s);
  CHECK(b.batches.size() == 3);
}

TEST_CASE("options out of range are refused while it runs, too, and change nothing") {
  Batching b({.max_size = 8});
  CHECK_THROWS_WITH(b.batcher.set_options({.max_size = 0}), Catch::Contains("max_size"));
  CHECK_THROWS_WITH(b.batcher.set_options({.max_size = 8, .short_handler = true}),
                    Catch::Contains("short_handler") && Catch::Contains("cannot be changed"));
  CHECK(b.batcher.options().max_size == 8);
  b.add({1});
  b.world.run_for(0s);
  CHECK(b.batches == Batches{{1}});
}

TEST_CASE("an error of the handler's says that it may have run, also in this process",
          "[threads]") {
  Batching b({});
  const Batcher<int(int)> refuses(
      {}, [](const std::vector<int>&) -> std::vector<int> { throw InvalidArgument("these rows"); });
  const auto result = outcome(refuses(1));
  CHECK(result.code() == ErrorCode::invalid_argument);
  CHECK(result.message() == "these rows");
  CHECK(test::may_have_run(result.error()));
}

TEST_CASE("every bad option is refused by its name") {
  const auto message = &test::refusal_of;
  const auto negative = static_cast<std::size_t>(-1);
  CHECK_THAT(message({.max_size = negative, .max_queue = negative}),
             Catch::Contains("max_size") && Catch::Contains("negative"));
  CHECK_THAT(message({.min_size = 0}), Catch::Contains("BatchOptions::min_size"));
  CHECK_THAT(message({.max_size = 4, .min_size = 5}),
             Catch::Contains("min_size (5)") && Catch::Contains("max_size (4)"));
  CHECK_THAT(message({.all_of = {"a", ""}}), Catch::Contains("all_of"));
  CHECK_THAT(message({.all_of = {"a", "a"}}), Catch::Contains("'a' twice"));
  CHECK_THAT(message({.max_size = 1, .all_of = {"a", "b"}}),
             Catch::Contains("all_of has 2 names") && Catch::Contains("max_size"));
  CHECK_THAT(message({.all_of = {"a", "b", "c"}, .preferred_sizes = {1, 2}}),
             Catch::Contains("at most 2 rows: raise preferred_sizes"));
  CHECK_THAT(message({.min_size = 32, .preferred_sizes = {1, 8}}),
             Catch::Contains("min_size (32)") && Catch::Contains("preferred_sizes (8)"));
  CHECK_THAT(message({.preferred_sizes = {0, 4}}), Catch::Contains("preferred_sizes"));
  CHECK_THAT(message({.preferred_sizes = {4, 2}}),
             Catch::Contains("ascending") && Catch::Contains("4 is before 2"));
  CHECK_THAT(message({.preferred_sizes = {4, 4}}), Catch::Contains("ascending"));
  CHECK_THAT(message({.max_size = 8, .preferred_sizes = {4, 16}}),
             Catch::Contains("16") && Catch::Contains("max_size (8)"));
  CHECK_THAT(message({.latency_target = {.latency = -1ms}}), Catch::Contains("latency_target"));
  CHECK_THAT(message({.latency_target = {.latency = 1ms, .percentile = 1}}),
             Catch::Contains("percentile"));
  CHECK_THAT(message({.max_wait = 1ms, .latency_target = {.latency = 1ms}}),
             Catch::Contains("latency_target") && Catch::Contains("max_wait"));
  CHECK_THAT(message({.max_queue = 0}), Catch::Contains("max_queue"));
  CHECK_THAT(message({.max_queue_bytes = 0}), Catch::Contains("max_queue_bytes"));
  CHECK_THAT(message({.parallelism = 0}), Catch::Contains("parallelism"));
  const auto move_only = [](const BatchOptions& options) {
    const Batcher<int(std::unique_ptr<int>)> batcher(
        options,
        [](const std::vector<std::unique_ptr<int>>& xs) { return std::vector<int>(xs.size()); });
  };
  CHECK_NOTHROW(move_only({}));
  CHECK_THROWS_WITH(move_only({.isolate = Isolate::bisect}),
                    Catch::Contains("BatchOptions::isolate"));
  CHECK_THROWS_WITH(move_only({.preferred_sizes = {1}}),
                    Catch::Contains("BatchOptions::preferred_sizes"));
}

TEST_CASE("a batcher tells what it has done, and why its batches started") {
  Batching b({.max_size = 4, .max_wait = 10ms});
  b.add({1, 2, 3, 4});
  b.world.run_for(0s);
  b.add({5, 6});
  b.world.run_for(10ms);
  b.add({7});
  b.batcher.flush();
  b.world.run_for(0s);
  const BatchStatistics s = b.batcher.statistics();
  CHECK(s.rows == 7);
  CHECK(s.answered == 7);
  CHECK(s.batches == 3);
  CHECK(s.handler_runs == 3);
  CHECK(count_of(s, BatchReason::size) == 1);
  CHECK(count_of(s, BatchReason::wait) == 1);
  CHECK(count_of(s, BatchReason::flush) == 1);
  CHECK(s.sizes.count() == 3);
  CHECK(s.sizes.sum() == 7);
  CHECK(s.queue_wait.count() == 7);
  CHECK(s.queue_wait.max() == 10'000'000);
  CHECK(s.latency.count() == 7);
  CHECK(s.wait == 10ms);
  CHECK(s.size == 4);
  const std::string table = to_string(s);
  for (const char* text : {"7 arrived: 7 answered", "size 1", "wait 1", "flush 1", "queue wait",
                           "a wait of 10000.0 us"})
    CHECK_THAT(table, Catch::Contains(text));
}

TEST_CASE("the time of a handler and the rows a second are measured") {
  HeldBatching b({});
  for (int i = 0; i < 10; ++i) {
    b.add(i);
    b.world.run_for(100ms);
    b.answer(static_cast<std::size_t>(i));
  }
  const BatchStatistics s = b.batcher.statistics();
  CHECK(static_cast<double>(s.handler_time.quantile(0.5)) == Approx(100e6).epsilon(0.02));
  CHECK(s.rows_per_second == Approx(10).epsilon(0.2));
  b.world.run_for(1min);
  CHECK(b.batcher.statistics().rows_per_second == 0);
}

TEST_CASE("why a batch started: the group was complete, or the handler was idle") {
  HeldBatching b({.all_of = {"a"}});
  const Node a = b.world.join("a");
  b.call(a, 1);
  CHECK(count_of(b.batcher.statistics(), BatchReason::all) == 1);
  b.answer(0);
  b.batcher.set_options({});
  b.add(2);
  b.world.run_for(0s);
  CHECK(count_of(b.batcher.statistics(), BatchReason::idle) == 1);
}

TEST_CASE("a short handler of a batcher without a node runs on the thread that completes the batch",
          "[threads]") {
  std::vector<std::thread::id> threads;
  const Batcher<int(int)> batcher({.max_size = 2, .min_size = 2, .short_handler = true},
                                  [&](std::vector<int> xs) {
                                    threads.push_back(std::this_thread::get_id());
                                    return xs;
                                  });
  auto first = batcher(1);
  CHECK_FALSE(first.ready());
  auto second = batcher(2);
  CHECK(first.ready());
  CHECK(second.get() == 2);
  CHECK(threads == std::vector<std::thread::id>{std::this_thread::get_id()});
}

TEST_CASE("a chain of batches that each bring the next does not use up the stack", "[threads]") {
  constexpr int kBatches = 100'000;
  int runs = 0;
  std::function<void(int)> next;
  const Batcher<int(int)> batcher({.max_size = 1, .short_handler = true}, [&](std::vector<int> xs) {
    ++runs;
    if (xs[0] < kBatches) next(xs[0] + 1);
    return xs;
  });
  next = [&](int x) { (void)batcher(x); };
  next(1);
  CHECK(runs == kBatches);
}

TEST_CASE("a pause does not hold up a batcher that is closed") {
  HeldBatching b({.max_size = 1});
  b.add(1);
  b.add(2);
  b.world.run_for(0s);
  auto closed = b.batcher.close(BatchClose::drain);
  b.batcher.pause();
  b.answer(0);
  REQUIRE(b.batches.size() == 2);
  b.answer(1);
  CHECK(closed.ready());
}

}  // namespace batch_control_test
}  // namespace batchrpc
