#include "policy_benchmark/report.hpp"

#include <torch/version.h>

#include <array>
#include <batchrpc/base/version.hpp>
#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/machine.hpp"
#include "common/statistics.hpp"

namespace policy_benchmark {
namespace {

using batchrpc_examples::median;

constexpr const char* kPublished =
    "  published (RLlib, each the best backend and mode of its row): CPU +34 %, T4 +14 %, V100 +92 "
    "%,"
    " A100 +157 %\n";
constexpr double kMostOverhead = 10;  // in percent, at kOverheadBatch
constexpr int kOverheadBatch = 16;

/// printf() into a string.
[[gnu::format(printf, 1, 2)]] std::string text_of(const char* format, ...) {
  std::array<char, 200> text{};
  va_list values;
  va_start(values, format);
  std::vsnprintf(text.data(), text.size(), format, values);
  va_end(values);
  return text.data();
}

/// The median over the rounds of the gain, in percent.
double above(const std::vector<double>& ours, const std::vector<double>& theirs) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < ours.size(); ++i)
    ratios.push_back(100 * (ours[i] / theirs.at(i) - 1));
  return median(std::move(ratios));
}

double overhead(const Figures& figures) {
  return above(figures.passes_per_s, figures.served_passes_per_s);
}

/// The smallest acceptable gain of the compiled network, in percent.
std::optional<double> goal_of(const Table& table, const std::string& form, int batch) {
  if (table.network != "atari" || table.threads != 1 || form != "frozen") return std::nullopt;
  if (batch == 1 || batch == 4) return 100;
  if (batch == 16) return 40;
  return std::nullopt;
}

const char* verdict(bool met) { return met ? " met" : " missed"; }

std::string batches_head(const Options& options, const char* what, int width) {
  std::string text = text_of("  %-28s", what);
  for (const int batch : options.batches)
    text += text_of("%*s", width, ("batch " + std::to_string(batch)).c_str());
  return text + "\n";
}

nlohmann::json rounds_json(const std::vector<double>& values) {
  return {{"median", median(values)}, {"rounds", values}};
}

nlohmann::json figures_json(const Table& table, std::size_t form, std::size_t batch, int size) {
  const Figures& figures = table.figures[form][batch];
  nlohmann::json entry{
      {"network", table.network},
      {"threads", table.threads},
      {"form", table.names[form]},
      {"batch", size},
      {"passes_per_s", rounds_json(figures.passes_per_s)},
      {"speed_up_percent", above(figures.passes_per_s, table.figures[0][batch].passes_per_s)}};
  if (const auto goal = goal_of(table, table.names[form], size)) entry["goal_percent"] = *goal;
  if (figures.served_passes_per_s.empty()) return entry;
  entry["served_passes_per_s"] = rounds_json(figures.served_passes_per_s);
  entry["served_p50_us"] = rounds_json(figures.p50_us);
  entry["served_p99_us"] = rounds_json(figures.p99_us);
  entry["served_mean_batch"] = rounds_json(figures.mean_batch);
  entry["serving_overhead_percent"] = overhead(figures);
  return entry;
}

}  // namespace

void print_head(const Run& run) {
  const nlohmann::json machine = batchrpc_examples::machine_report();
  run.out << text_of(
      "batchrpc %s, LibTorch %s, on %s%s, %d CPUs (%s); medians of %d rounds of %g s\n",
      std::string(batchrpc::version()).c_str(), TORCH_VERSION, run.options.device.c_str(),
      run.options.cuda_graphs ? " with CUDA graphs" : "", machine["cpus"].get<int>(),
      machine["cpu"].get<std::string>().c_str(), run.options.rounds, run.options.seconds);
  if (run.options.policies.empty()) {
    run.out << "without --policies: TorchScript is made here, in C++, and nothing is compiled\n";
  }
  run.out << std::flush;
}

void print_direct(const Run& run, const Table& table) {
  run.out << text_of("\n%s, %d thread%s: forward passes/s, and the speed-up over eager\n",
                     table.network.c_str(), table.threads, table.threads == 1 ? "" : "s")
          << batches_head(run.options, "policy", 24);
  for (std::size_t form = 0; form < table.figures.size(); ++form) {
    run.out << text_of("  %-28s", table.titles[form].c_str());
    for (std::size_t i = 0; i < run.options.batches.size(); ++i) {
      const Figures& figures = table.figures[form][i];
      std::string cell = text_of("%.0f", median(figures.passes_per_s));
      if (form > 0) {
        const double gain = above(figures.passes_per_s, table.figures[0][i].passes_per_s);
        cell += text_of(" %+.0f %%", gain);
        if (const auto goal = goal_of(table, table.names[form], run.options.batches[i])) {
          cell += verdict(gain >= *goal);
        }
      }
      run.out << text_of("%24s", cell.c_str());
    }
    run.out << "\n";
  }
  run.out << kPublished << std::flush;
}

void print_served(const Run& run, const Table& table) {
  run.out << text_of(
                 "\n%s, %d thread%s, served to %d processes: passes/s, what serving adds to a pass,"
                 " p50 of a call\n",
                 table.network.c_str(), table.threads, table.threads == 1 ? "" : "s",
                 run.options.clients)
          << batches_head(run.options, "policy", 32);
  for (std::size_t form = 0; form < table.figures.size(); ++form) {
    run.out << text_of("  %-28s", table.titles[form].c_str());
    for (std::size_t i = 0; i < run.options.batches.size(); ++i) {
      const Figures& figures = table.figures[form][i];
      std::string cell = text_of("%.0f %+.0f %% %.2f ms", median(figures.served_passes_per_s),
                                 overhead(figures), median(figures.p50_us) * 1e-3);
      if (table.network == "atari" && run.options.batches[i] == kOverheadBatch) {
        cell += verdict(overhead(figures) <= kMostOverhead);
      }
      run.out << text_of("%32s", cell.c_str());
    }
    run.out << "\n";
  }
  run.out << std::flush;
}

nlohmann::json report_json(const Options& options, const std::vector<Table>& tables) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Table& table : tables) {
    for (std::size_t form = 0; form < table.figures.size(); ++form) {
      for (std::size_t i = 0; i < options.batches.size(); ++i)
        rows.push_back(figures_json(table, form, i, options.batches[i]));
    }
  }
  return {
      {"system", "batchrpc"},
      {"machine", batchrpc_examples::machine_report()},
      {"versions",
       {{"batchrpc", batchrpc::version()}, {"libtorch", TORCH_VERSION}, {"compiler", __VERSION__}}},
      {"settings",
       {{"networks", options.networks},
        {"policies", options.policies},
        {"batches", options.batches},
        {"threads", options.threads},
        {"device", options.device},
        {"cuda_graphs", options.cuda_graphs},
        {"clients", options.clients},
        {"rounds", options.rounds},
        {"seconds", options.seconds}}},
      {"published_percent", {{"CPU", 34}, {"T4", 14}, {"V100", 92}, {"A100", 157}}},
      {"rows", rows}};
}

}  // namespace policy_benchmark
