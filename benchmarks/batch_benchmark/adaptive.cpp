#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "batch_benchmark/load.hpp"
#include "batch_benchmark/sections.hpp"
#include "common/statistics.hpp"

namespace batch_benchmark {

namespace {

using namespace std::chrono_literals;
using batchrpc_examples::median;

// The handler's cost: a fixed time, plus a time per row.
constexpr auto kFixedCost = 1000us;
constexpr auto kCostOfRow = 50us;
constexpr std::size_t kMaxSize = 64;
constexpr double kPercentile = 99;
constexpr double kGoal = 0.9;  // as a fraction of the rows/s of the best fixed setting
constexpr double kSampleLength =
    4;  // in units of --seconds, because percentiles and adapting need longer samples

double capacity() {
  const std::chrono::duration<double> run = kFixedCost + kMaxSize * kCostOfRow;
  return kMaxSize / run.count();
}

struct Setup {
  std::string name;
  batchrpc::BatchOptions options;
  bool adaptive = false;
};

std::vector<Setup> setups(const Options& options) {
  std::vector<Setup> all;
  const std::chrono::duration<double, std::milli> target(options.latency_target_ms);
  all.push_back(
      {.name = "adaptive",
       .options = {.max_size = kMaxSize,
                   .latency_target = {.latency =
                                          std::chrono::duration_cast<batchrpc::Duration>(target),
                                      .percentile = kPercentile / 100}},
       .adaptive = true});
  const auto add_fixed = [&all](std::size_t size, batchrpc::Duration wait,
                                const std::string& name) {
    all.push_back({.name = name, .options = {.max_size = size, .max_wait = wait}});
  };
  for (const std::size_t size : {std::size_t{16}, std::size_t{32}, kMaxSize})
    add_fixed(size, 0us, "max_size " + std::to_string(size));
  for (const auto wait : {500us, 1000us, 2000us, 4000us, 8000us})
    add_fixed(kMaxSize, wait, "max_wait " + std::to_string(wait.count()) + " us");
  return all;
}

/// The values of a setup, one for each round.
struct Figures {
  Setup setup;
  std::vector<double> rows_per_s{};
  std::vector<double> p99_us{};
  std::vector<double> mean_batch{};
  std::vector<double> busy{};  // the fraction of time in which the handler ran
  int kept = 0;                // rounds in which the target was met
  [[nodiscard]] bool keeps(int rounds) const { return kept * 2 > rounds; }
};

using Apply = std::function<Load(const Ask& ask, const Span& span, int round)>;

void work(Work how, std::size_t rows) {
  const auto time = kFixedCost + static_cast<int>(rows) * kCostOfRow;
  const auto end = std::chrono::steady_clock::now() + time;
  if (how == Work::sleep) {
    sleep_exactly();
    return std::this_thread::sleep_until(end);
  }
  while (std::chrono::steady_clock::now() < end) {
  }
}

void measure_round(const Run& run, const Apply& apply, int round, Figures& figures) {
  const Work how = run.options.work;
  const batchrpc::Batcher<std::int64_t(std::int64_t)> batcher(
      figures.setup.options, [how](std::vector<std::int64_t> rows) {
        work(how, rows.size());
        return rows;
      });
  const double seconds = kSampleLength * run.options.seconds;
  const auto begin = std::chrono::steady_clock::now();
  const Load load =
      apply([&] { return batcher(1); }, {.warm_up = seconds / 2, .seconds = seconds}, round);
  const std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - begin;
  const batchrpc::BatchStatistics statistics = batcher.statistics();
  figures.rows_per_s.push_back(load.rows_per_s);
  figures.p99_us.push_back(batchrpc_examples::percentile(load.us, kPercentile));
  figures.mean_batch.push_back(statistics.sizes.mean());
  figures.busy.push_back(static_cast<double>(statistics.handler_time.sum()) / passed.count());
  if (load.keeps(run.options.latency_target_ms * 1000, kPercentile)) ++figures.kept;
}

/// Of the fixed settings that meet the target, the one with the most rows per second; among nearly
/// equal ones, the one with the lower p99. Null if none meets it.
const Figures* best_fixed(const std::vector<Figures>& all, int rounds) {
  constexpr double kNearly = 1.02;
  const Figures* best = nullptr;
  for (const Figures& figures : all) {
    if (figures.setup.adaptive || !figures.keeps(rounds)) continue;
    if (best == nullptr) {
      best = &figures;
      continue;
    }
    const double ratio = median(figures.rows_per_s) / median(best->rows_per_s);
    const bool faster = ratio > kNearly;
    const bool as_fast = ratio * kNearly >= 1;
    if (faster || (as_fast && median(figures.p99_us) < median(best->p99_us))) best = &figures;
  }
  return best;
}

nlohmann::json measure_load(const Run& run, const std::string& name, const Apply& apply) {
  const int rounds = run.options.rounds;
  std::vector<Figures> all;
  for (Setup& setup : setups(run.options))
    all.push_back({std::move(setup)});
  for (int round = 0; round < rounds; ++round) {
    for (Figures& figures : all) {
      run.interrupts.check();
      measure_round(run, apply, round, figures);
    }
  }
  nlohmann::json rows = nlohmann::json::array();
  for (const Figures& figures : all) {
    const bool keeps = figures.keeps(rounds);
    run.out << text_of("  %-24s %-18s %9.0f %9.0f %7.1f %6.0f %% %s\n", name.c_str(),
                       figures.setup.name.c_str(), median(figures.rows_per_s),
                       median(figures.p99_us), median(figures.mean_batch),
                       100 * median(figures.busy), keeps ? "kept" : "missed");
    rows.push_back({{"setting", figures.setup.name},
                    {"rows_per_s", rounds_json(figures.rows_per_s)},
                    {"p99_us", rounds_json(figures.p99_us)},
                    {"mean_batch", rounds_json(figures.mean_batch)},
                    {"busy", rounds_json(figures.busy)},
                    {"keeps_target", keeps}});
  }
  nlohmann::json entry{{"load", name}, {"rows", rows}};
  const Figures* best = best_fixed(all, rounds);
  if (best == nullptr) {
    run.out << "  no fixed setting meets the target\n" << std::endl;
    return entry;
  }
  const double rate = median_ratio(all.front().rows_per_s, best->rows_per_s);
  const double p99 = median_ratio(all.front().p99_us, best->p99_us);
  const bool met = rate >= kGoal && all.front().keeps(rounds);
  run.out << text_of(
                 "  adaptive: %.2f x the rows/s and %.2f x the p99 of the best fixed, %s; goal: at "
                 "least %.2f x its rows/s, the target kept%s\n\n",
                 rate, p99, best->setup.name.c_str(), kGoal, verdict(met))
          << std::flush;
  entry["best_fixed"] = best->setup.name;
  entry["rows_per_s_to_best_fixed"] = rate;
  entry["p99_to_best_fixed"] = p99;
  entry["goal_rows_per_s_to_best_fixed"] = kGoal;
  entry["met"] = met;
  return entry;
}

}  // namespace

nlohmann::json measure_adaptive(const Run& run) {
  run.out << text_of(
      "\nadaptive: a handler that %s for %d us and %d us a row; p99 to keep: %g ms\n"
      "  %-24s %-18s %9s %9s %7s %8s %s\n",
      run.options.work == Work::sleep ? "sleeps" : "spins", static_cast<int>(kFixedCost.count()),
      static_cast<int>(kCostOfRow.count()), run.options.latency_target_ms, "load", "setting",
      "rows/s", "p99 us", "batch", "busy", "target");
  nlohmann::json loads = nlohmann::json::array();
  for (const int percent : {30, 60, 90}) {
    loads.push_back(measure_load(run, "random, " + std::to_string(percent) + " % of most",
                                 [percent](const Ask& ask, const Span& span, int round) {
                                   return open_loop(ask, capacity() * percent / 100, span,
                                                    static_cast<std::uint64_t>(round) + 1);
                                 }));
  }
  for (const int callers : {8, 32}) {
    loads.push_back(measure_load(run, std::to_string(callers) + " callers in a loop",
                                 [callers](const Ask& ask, const Span& span, int /*round*/) {
                                   return closed_loop(ask, callers, span);
                                 }));
  }
  return {{"fixed_cost_us", kFixedCost.count()},
          {"cost_of_row_us", kCostOfRow.count()},
          {"max_size", kMaxSize},
          {"most_rows_per_s", capacity()},
          {"loads", loads}};
}

}  // namespace batch_benchmark
