#include "batch/adaptive_wait.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <vector>

#include "batch/batch_simulation.hpp"

namespace batchrpc {
namespace adaptive_wait_test {

using namespace std::chrono_literals;
using test::BatchSimulation;
using Think = BatchSimulation::Think;

constexpr double kCapacity = 64 / 1640e-6;  // rows a second of the usual handler, 64 at a time

BatchOptions aiming_at(Duration latency, double percentile = 0.99) {
  BatchOptions options;
  options.max_queue = 4096;
  options.latency_target = {latency, percentile};
  return options;
}

using Load = std::function<void(BatchSimulation&)>;

BatchSimulation::Measured measured(const BatchOptions& options, const Load& load,
                                   const BatchSimulation::Cost& cost, std::size_t before,
                                   std::size_t rows) {
  BatchSimulation simulation(options, cost);
  load(simulation);
  simulation.run_rows(before);
  return simulation.measure(rows);
}

/// The most rows a second of fixed settings that keep the target; 0 when none does.
double best_fixed(const BatchOptions& adaptive, const Load& load, const BatchSimulation::Cost& cost,
                  std::size_t callers) {
  const LatencyTarget target = adaptive.latency_target;
  double best = 0;
  for (const std::size_t size : {std::size_t{64}, std::min<std::size_t>(callers, 48)}) {
    for (const int part : {0, 1, 2, 4, 8}) {
      BatchOptions fixed = adaptive;
      fixed.latency_target = {};
      fixed.max_size = size;
      fixed.max_wait = target.latency * part / 8;
      const auto found = measured(fixed, load, cost, 300, 800);
      const double latency = found.quantile(target.percentile);
      if (latency <= std::chrono::duration<double, std::micro>(target.latency).count()) {
        best = std::max(best, found.rows_per_second);
      }
    }
  }
  return best;
}

void check_against_fixed(const BatchOptions& options, const Load& load, std::size_t callers,
                         const BatchSimulation::Cost& cost = {}) {
  const auto found = measured(options, load, cost, 500 + 30 * callers, 2000);
  const double target =
      std::chrono::duration<double, std::micro>(options.latency_target.latency).count();
  CAPTURE(callers, target, options.latency_target.percentile, found.rows_per_batch);
  CHECK(found.quantile(options.latency_target.percentile) <= target);
  const double best = best_fixed(options, load, cost, callers);
  REQUIRE(best > 0);
  CHECK(found.rows_per_second >= 0.9 * best);
}

TEST_CASE(
    "of rows that come regardless of answers as many are answered as with the best fixed wait") {
  for (const double part : {0.1, 0.5, 0.9}) {
    const Load load = [part](BatchSimulation& s) { s.open_loop(part * kCapacity); };
    CAPTURE(part);
    check_against_fixed(aiming_at(5ms), load, 32);
  }
}

TEST_CASE("callers that wait for their answers get as many as with the best fixed wait") {
  for (const std::size_t callers : {std::size_t{2}, std::size_t{16}, std::size_t{64}}) {
    const Load load = [=](BatchSimulation& s) { s.closed_loop(callers, 300); };
    check_against_fixed(aiming_at(8ms), load, callers);
  }
}

TEST_CASE("the same with a target that leaves little room, of any percentile, and other handlers") {
  const auto closed = [](std::size_t callers, double think, Think how) {
    return [=](BatchSimulation& s) { s.closed_loop(callers, think, how); };
  };
  check_against_fixed(aiming_at(2500us), closed(16, 300, Think::exponential), 16);
  check_against_fixed(aiming_at(3ms, 0.5), closed(16, 300, Think::uniform), 16);
  check_against_fixed(aiming_at(8ms, 0.999), closed(16, 300, Think::uniform), 16);
  check_against_fixed(aiming_at(8ms), closed(16, 300, Think::exponential), 16, {1000, 0});
  check_against_fixed(aiming_at(8ms), closed(16, 300, Think::exponential), 16, {0, 30});
  check_against_fixed(aiming_at(8ms), closed(16, 5000, Think::exponential), 16);
  check_against_fixed(aiming_at(8ms, 0.95), closed(16, 300, Think::constant), 16, {1000, 10, 0.1});
}

TEST_CASE("who waits alone is answered at once") {
  BatchSimulation one(aiming_at(50ms), {});
  one.closed_loop(1, 100, Think::uniform);
  one.run_rows(200);
  CHECK(one.measure(100).quantile(1) == Approx(1010));
}

TEST_CASE("statistics say which wait and sizes were chosen") {
  BatchSimulation pair(aiming_at(8ms), {});
  const BatchStatistics before = pair.batcher.statistics();
  CHECK(before.wait == 0s);
  CHECK(before.size == 64);
  CHECK(before.min_size == 1);
  pair.closed_loop(2, 200);
  pair.run_batches(60);
  const BatchStatistics waits = pair.batcher.statistics();
  CHECK(waits.min_size == 2);
  CHECK(waits.size == 64);
  CHECK(waits.wait > 200us);
  CHECK(waits.wait < 8ms);
  CHECK(waits.reasons.at(static_cast<std::size_t>(BatchReason::min_size)) > 20);

  BatchSimulation fixed({.max_size = 8, .max_wait = 3ms, .min_size = 4}, {});
  CHECK(fixed.batcher.statistics().wait == 3ms);
  CHECK(fixed.batcher.statistics().size == 8);
  CHECK(fixed.batcher.statistics().min_size == 4);
}

TEST_CASE("a choice follows the load") {
  BatchSimulation simulation(aiming_at(8ms), {});
  simulation.closed_loop(16, 200, Think::uniform);
  simulation.run_batches(60);
  CHECK(simulation.batcher.statistics().min_size >= 12);
  simulation.closed_loop(2, 200, Think::uniform);
  simulation.run_batches(60);
  CHECK(simulation.batcher.statistics().min_size == 2);
  simulation.closed_loop(1, 200, Think::uniform);
  simulation.run_batches(60);
  CHECK(simulation.batcher.statistics().wait == 0s);
  simulation.closed_loop(16, 200, Think::uniform);
  simulation.run_batches(60);
  CHECK(simulation.batcher.statistics().min_size >= 12);
  simulation.open_loop(0.5 * kCapacity);
  simulation.run_batches(60);
  CHECK(simulation.measure(500).quantile(0.99) <= 8000);
}

TEST_CASE("a choice follows the handler's cost") {
  BatchSimulation simulation(aiming_at(8ms), {});
  simulation.closed_loop(2, 200, Think::uniform);
  simulation.run_batches(60);
  CHECK(simulation.batcher.statistics().min_size == 2);
  simulation.cost = {0, 400};  // together they take as long as one after the other
  simulation.run_batches(100);
  CHECK(simulation.batcher.statistics().wait == 0s);
  simulation.cost = {1000, 10};
  simulation.run_batches(60);
  CHECK(simulation.batcher.statistics().min_size == 2);
}

TEST_CASE("whatever cannot be had, rows are answered") {
  const double best = 16 / 1460e-6;  // all 16 at a time, the last of which thinks for 300 us
  for (const Duration target : {Duration(1), Duration(10us), Duration(900us)}) {
    const auto found = measured(
        aiming_at(target), [](BatchSimulation& s) { s.closed_loop(16, 300, Think::uniform); }, {},
        500, 500);
    CHECK(found.rows_per_second > best / 2);
  }
  // Of a load that is more than it can do, it answers what it can.
  const auto overload = measured(
      aiming_at(3ms), [](BatchSimulation& s) { s.open_loop(1.5 * kCapacity); }, {}, 500, 2000);
  CHECK(overload.rows_per_second > 0.98 * kCapacity);
  BatchOptions one_by_one = aiming_at(8ms);
  one_by_one.max_size = 1;
  const auto found = measured(
      one_by_one, [](BatchSimulation& s) { s.closed_loop(4, 100); }, {}, 100, 300);
  CHECK(found.rows_per_second == Approx(1e6 / 1010).epsilon(0.02));
}

TEST_CASE("batches of a handler whose rows cost the same alone are small enough for the target") {
  BatchSimulation simulation(aiming_at(4ms), {20, 100});
  simulation.open_loop(5000);
  simulation.run_batches(100);
  const std::size_t size = simulation.batcher.statistics().size;
  CHECK(size >= 10);
  CHECK(size <= 20);
  CHECK(simulation.measure(500).quantile(0.99) <= 4000);
}

TEST_CASE("what is late shortens the wait, and what is in time gives it back slowly") {
  detail::AdaptiveWait adaptive({10ms, 0.9}, 64, 1);
  // Two callers, who send their next rows 150 and 200 us behind the end of a batch.
  TimePoint now{};
  adaptive.arrived(now, 1);
  std::size_t waiting = 1;
  const auto round = [&](Duration latency) {
    const std::size_t rows = adaptive.choice().min_size;
    TimePoint started = rows == 2 ? now + 200us : waiting == 1 ? now : now + 150us;
    if (waiting == 0) adaptive.arrived(now + 150us, 1);
    adaptive.arrived(now + 200us, 1);
    now = started + 2ms;
    waiting = 2 - rows;
    adaptive.ended(started, now, rows, waiting, std::vector<TimePoint>(rows, now - latency));
  };
  for (int i = 0; i < 100; ++i)
    round(2ms);
  CHECK(adaptive.choice().min_size == 2);
  CHECK(adaptive.choice().wait > 2ms);
  for (int i = 0; i < 40; ++i)
    round(20ms);
  CHECK(adaptive.choice().wait == 0s);
  for (int i = 0; i < 2000; ++i)
    round(2ms);
  CHECK(adaptive.choice().wait > 2ms);
}

TEST_CASE("a choice that pays is kept") {
  BatchSimulation simulation(aiming_at(8ms), {});
  simulation.closed_loop(16, 50);
  simulation.run_batches(60);
  int stopped = 0;
  for (int i = 0; i < 300; ++i) {
    simulation.run_batches(1);
    if (simulation.batcher.statistics().wait == 0s) ++stopped;
  }
  CHECK(stopped <= 12);  // batches that do not wait, to learn what fewer rows cost
}

TEST_CASE("several batches at once do not wait") {
  BatchOptions options = aiming_at(8ms);
  options.parallelism = 2;
  BatchSimulation simulation(options, {});
  simulation.closed_loop(2, 200, Think::uniform);
  simulation.run_batches(60);
  CHECK(simulation.batcher.statistics().wait == 0s);
}

}  // namespace adaptive_wait_test
}  // namespace batchrpc
