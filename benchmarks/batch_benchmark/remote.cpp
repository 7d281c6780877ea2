#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <random>

#include "batch_benchmark/observers.hpp"
#include "batch_benchmark/sections.hpp"
#include "batch_benchmark/variant.hpp"
#include "common/statistics.hpp"

namespace batch_benchmark {

namespace {

using batchrpc_examples::median;
using batchrpc_examples::percentiles;

constexpr int kObserversOfGoal = 10;
constexpr double kGoalToUnbatched = 2;

/// The results of a variant, one value per round.
struct VariantFigures {
  Variant variant;
  std::vector<double> actions_per_s{};
  std::vector<double> p50_us{};
  std::vector<double> p99_us{};
  std::vector<double> mean_batch{};
  std::vector<double> cpu_us{};  // of this process per action
};

std::vector<VariantFigures> all_variants(const Options& options) {
  std::vector<VariantFigures> all;
  for (const Setting& setting : options.batchers)
    all.push_back({batcher_variant(setting)});
  for (const bool on_workers : {false, true})
    all.push_back({unbatched_variant(on_workers)});
  for (const bool on_workers : {false, true})
    all.push_back({by_hand_variant(on_workers)});
  return all;
}

void measure_round(Observers& observers, int count, VariantFigures& figures) {
  Served served(observers.node(), figures.variant, observers.names(count));
  const Sample sample = observers.measure(count, Served::function(), [&] { served.release(); });
  const auto us = percentiles(sample.us, {50, 99});
  figures.actions_per_s.push_back(sample.rows_per_s);
  figures.p50_us.push_back(us[0]);
  figures.p99_us.push_back(us[1]);
  figures.mean_batch.push_back(served.mean_batch());
  figures.cpu_us.push_back(sample.cpu_us);
}

/// The variant with the highest median.
const VariantFigures& best_of(const std::vector<VariantFigures>& all, How how) {
  const VariantFigures* best = nullptr;
  for (const VariantFigures& figures : all) {
    if (figures.variant.how != how) continue;
    if (best == nullptr || median(figures.actions_per_s) > median(best->actions_per_s)) {
      best = &figures;
    }
  }
  return *best;
}

nlohmann::json entry_of(int observers, const VariantFigures& figures) {
  return {{"observers", observers},
          {"variant", figures.variant.name},
          {"actions_per_s", rounds_json(figures.actions_per_s)},
          {"p50_us", rounds_json(figures.p50_us)},
          {"p99_us", rounds_json(figures.p99_us)},
          {"cpu_us", rounds_json(figures.cpu_us)},
          {"mean_batch", median(figures.mean_batch)}};
}

/// Compares the best batcher with the best other variant of the same rounds.
nlohmann::json compare(const Run& run, int observers, const std::vector<VariantFigures>& all) {
  const VariantFigures& batcher = best_of(all, How::batcher);
  const VariantFigures& unbatched = best_of(all, How::unbatched);
  const VariantFigures& by_hand = best_of(all, How::by_hand);
  const double to_unbatched = median_ratio(batcher.actions_per_s, unbatched.actions_per_s);
  const double to_by_hand = median_ratio(batcher.actions_per_s, by_hand.actions_per_s);
  const double cpu = median_ratio(batcher.cpu_us, by_hand.cpu_us);
  const bool has_goal = observers == kObserversOfGoal;
  const bool met = to_unbatched >= kGoalToUnbatched;
  run.out << text_of("  %9d best: %s: %.2f x %s%s, %.2f x %s%s (CPU: %.2f)\n\n", observers,
                     batcher.variant.name.c_str(), to_unbatched, unbatched.variant.name.c_str(),
                     has_goal ? verdict(met) : "", to_by_hand, by_hand.variant.name.c_str(),
                     verdict(to_by_hand >= 1), cpu)
          << std::flush;
  nlohmann::json entry{{"observers", observers},
                       {"best_batcher", batcher.variant.name},
                       {"best_unbatched", unbatched.variant.name},
                       {"best_by_hand", by_hand.variant.name},
                       {"to_unbatched", to_unbatched},
                       {"to_by_hand", to_by_hand},
                       {"cpu_to_by_hand", cpu},
                       {"to_by_hand_met", to_by_hand >= 1}};
  if (has_goal) entry["to_unbatched_met"] = met;
  return entry;
}

}  // namespace

nlohmann::json measure_remote(const Run& run) {
  const auto& counts = run.options.observers;
  run.out << "\nremote: observers in processes of their own, each in a closed loop; a policy "
             "4-128-2 with gradients\n"
          << text_of("  %9s %-30s %10s %9s %9s %7s %7s\n", "observers", "variant", "actions/s",
                     "p50 us", "p99 us", "CPU us", "batch")
          << std::flush;
  Observers observers(*std::max_element(counts.begin(), counts.end()), run);
  nlohmann::json rows = nlohmann::json::array();
  nlohmann::json comparisons = nlohmann::json::array();
  for (const int count : counts) {
    std::vector<VariantFigures> all = all_variants(run.options);
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::mt19937 shuffle(static_cast<std::mt19937::result_type>(count));
    for (int round = 0; round < run.options.rounds; ++round) {
      // Shuffled, so that no variant is always measured after the same other one.
      std::shuffle(order.begin(), order.end(), shuffle);
      for (const std::size_t index : order)
        measure_round(observers, count, all[index]);
    }
    for (const VariantFigures& figures : all) {
      run.out << text_of("  %9d %-30s %10.0f %9.1f %9.1f %7.2f %7.2f\n", count,
                         figures.variant.name.c_str(), median(figures.actions_per_s),
                         median(figures.p50_us), median(figures.p99_us), median(figures.cpu_us),
                         median(figures.mean_batch));
      rows.push_back(entry_of(count, figures));
    }
    comparisons.push_back(compare(run, count, all));
  }
  return {{"rows", rows}, {"comparisons", comparisons}};
}

}  // namespace batch_benchmark
