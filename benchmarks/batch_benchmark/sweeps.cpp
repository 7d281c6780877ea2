#include <algorithm>
#include <nlohmann/json.hpp>

#include "batch_benchmark/load.hpp"
#include "batch_benchmark/observers.hpp"
#include "batch_benchmark/sections.hpp"
#include "batch_benchmark/sweep_figures.hpp"
#include "batch_benchmark/variant.hpp"
#include "common/statistics.hpp"

namespace batch_benchmark {

namespace {

using namespace std::chrono_literals;
using batchrpc_examples::percentiles;

constexpr int kLocalCallers = 64;
constexpr int kObserversThatWait = 8;

/// How one point of a sweep is measured, and its result.
struct Task {
  std::size_t series;  // index in the sweep
  double x;
  std::function<Sample(double& mean_batch)> measure;
  std::vector<double> rows_per_s{}, p50_us{}, p99_us{}, mean_batch{};
};

void measure_all(const Run& run, std::vector<Task>& tasks, Sweep& sweep) {
  for (int round = 0; round < run.options.rounds; ++round) {
    for (Task& task : tasks) {
      run.interrupts.check();
      double mean_batch = 1;
      const Sample sample = task.measure(mean_batch);
      const auto us = percentiles(sample.us, {50, 99});
      task.rows_per_s.push_back(sample.rows_per_s);
      task.p50_us.push_back(us[0]);
      task.p99_us.push_back(us[1]);
      task.mean_batch.push_back(mean_batch);
    }
  }
  run.out << text_of("\nsweep: %s\n  %10s %-26s %10s %9s %9s %7s\n", sweep.title.c_str(),
                     sweep.x_label.c_str(), "", "rows/s", "p50 us", "p99 us", "batch");
  for (const Task& task : tasks) {
    const SweepPoint point{.x = task.x,
                           .rows_per_s = task.rows_per_s,
                           .p50_us = task.p50_us,
                           .p99_us = task.p99_us,
                           .mean_batch = task.mean_batch};
    SweepSeries& series = sweep.series.at(task.series);
    run.out << text_of(
        "  %10g %-26s %10.0f %9.1f %9.1f %7.2f\n", task.x, series.name.c_str(),
        batchrpc_examples::median(task.rows_per_s), batchrpc_examples::median(task.p50_us),
        batchrpc_examples::median(task.p99_us), batchrpc_examples::median(task.mean_batch));
    series.points.push_back(point);
  }
  run.out << std::flush;
}

Sweep sweep_max_size(const Run& run) {
  Sweep sweep{.name = "max_size",
              .title = "64 callers of one process in closed loops, policy 4-128-2, idle start",
              .x_label = "max_size, rows",
              .doubling = true,
              .series = {{.name = "idle"}}};
  std::vector<Task> tasks;
  for (const std::size_t size : {1U, 2U, 4U, 8U, 16U, 32U, 64U}) {
    tasks.push_back(
        {0, static_cast<double>(size), [&run, size](double& mean_batch) {
           ActingPolicy policy(true, 500 * kLocalCallers);
           const batchrpc::Batcher<std::int64_t(at::Tensor)> batcher(
               {.max_size = size}, [&](const at::Tensor& rows) { return policy.act(rows); });
           const at::Tensor row = at::tensor({.01F, -.02F, .03F, -.04F});
           const Load load =
               closed_loop([&] { return batcher(row); }, kLocalCallers,
                           {.warm_up = run.options.warm_up, .seconds = run.options.seconds});
           mean_batch = batcher.statistics().sizes.mean();
           return Sample{.rows_per_s = load.rows_per_s, .us = load.us};
         }});
  }
  measure_all(run, tasks, sweep);
  return sweep;
}

Sweep sweep_max_wait(const Run& run, Observers& observers) {
  const int count = std::min(kObserversThatWait, *std::max_element(run.options.observers.begin(),
                                                                   run.options.observers.end()));
  const auto full = static_cast<std::size_t>(count);
  Sweep sweep{.name = "max_wait",
              .title = std::to_string(count) + " processes in closed loops, policy 4-128-2",
              .x_label = "max_wait, ms",
              .series = {{.name = "max_size " + std::to_string(count) + ": as many as call"},
                         {.name = "max_size 64: more than call"}}};
  std::vector<Task> tasks;
  for (const std::size_t series : {0U, 1U}) {
    for (const auto wait : {0us, 100us, 250us, 500us, 1000us, 2000us}) {
      const std::chrono::duration<double, std::milli> x = wait;
      tasks.push_back({series, x.count(), [&observers, count, full, series, wait](double& mean) {
                         Served served(observers.node(), batcher_variant(Setting("idle")),
                                       observers.names(count), true,
                                       [&](batchrpc::BatchOptions& options) {
                                         options.max_wait = wait;
                                         options.max_size = series == 0 ? full : 64;
                                       });
                         Sample sample = observers.measure(count, Served::function(),
                                                           [&] { served.release(); });
                         mean = served.mean_batch();
                         return sample;
                       }});
    }
  }
  measure_all(run, tasks, sweep);
  return sweep;
}

Sweep sweep_observers(const Run& run, Observers& observers) {
  std::vector<Variant> variants;
  for (const Setting& setting : run.options.batchers)
    variants.push_back(batcher_variant(setting));
  variants.push_back(unbatched_variant(false));
  variants.push_back(by_hand_variant(false));
  Sweep sweep{.name = "observers",
              .title = "processes in closed loops, policy 4-128-2",
              .x_label = "observers",
              .series = {}};
  for (const Variant& variant : variants)
    sweep.series.push_back({.name = variant.name});
  std::vector<Task> tasks;
  for (const int count : run.options.observers) {
    for (std::size_t i = 0; i < variants.size(); ++i) {
      tasks.push_back({i, static_cast<double>(count),
                       [&observers, count, variant = variants[i]](double& mean_batch) {
                         Served served(observers.node(), variant, observers.names(count));
                         Sample sample = observers.measure(count, Served::function(),
                                                           [&] { served.release(); });
                         mean_batch = served.mean_batch();
                         return sample;
                       }});
    }
  }
  measure_all(run, tasks, sweep);
  return sweep;
}

}  // namespace

nlohmann::json measure_sweeps(const Run& run) {
  std::vector<Sweep> sweeps{sweep_max_size(run)};
  const auto& counts = run.options.observers;
  {
    Observers observers(*std::max_element(counts.begin(), counts.end()), run);
    sweeps.push_back(sweep_max_wait(run, observers));
    sweeps.push_back(sweep_observers(run, observers));
  }
  nlohmann::json rows = nlohmann::json::array();
  for (const Sweep& sweep : sweeps) {
    append_rows(sweep, rows);
    if (!run.options.figures.empty()) draw(sweep, run.options.figures);
  }
  return rows;
}

}  // namespace batch_benchmark
