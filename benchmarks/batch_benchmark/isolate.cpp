#include <batchrpc/batchrpc.hpp>
#include <bit>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "batch_benchmark/sections.hpp"

namespace batch_benchmark {

namespace {

constexpr std::size_t kRows = 64;
constexpr std::uint64_t kGoalOfRuns = 13;  // all rows, and both halves of six halvings
constexpr double kPoison = -1;

double value_of(double row) { return std::sin(row) / 3; }

std::vector<double> values_of(std::vector<double> rows) {
  for (double& row : rows) {
    if (row == kPoison) throw std::runtime_error("a poisoned row");
    row = value_of(row);
  }
  return rows;
}

struct Outcome {
  std::size_t exact = 0;
  std::size_t failed = 0;
  std::uint64_t runs = 0;
};

Outcome with_poison_at(std::size_t poisoned) {
  const batchrpc::Batcher<double(double)> batcher({.max_size = kRows,
                                                   .min_size = kRows,
                                                   .isolate = batchrpc::Isolate::bisect,
                                                   .short_handler = true},
                                                  values_of);
  std::vector<batchrpc::Future<double>> futures;
  for (std::size_t i = 0; i < kRows; ++i)
    futures.push_back(batcher(i == poisoned ? kPoison : static_cast<double>(i)));
  Outcome outcome;
  for (std::size_t i = 0; i < kRows; ++i) {
    try {
      const double result = std::move(futures[i]).get();
      const double expected = value_of(static_cast<double>(i));
      if (std::bit_cast<std::uint64_t>(result) == std::bit_cast<std::uint64_t>(expected)) {
        ++outcome.exact;
      }
    } catch (const std::runtime_error&) {
      ++outcome.failed;
    }
  }
  outcome.runs = batcher.statistics().handler_runs;
  return outcome;
}

}  // namespace

nlohmann::json measure_isolate(const Run& run) {
  std::size_t least_exact = kRows;
  std::size_t most_failed = 0;
  std::uint64_t most_runs = 0;
  for (std::size_t poisoned = 0; poisoned < kRows; ++poisoned) {
    const Outcome outcome = with_poison_at(poisoned);
    least_exact = std::min(least_exact, outcome.exact);
    most_failed = std::max(most_failed, outcome.failed);
    most_runs = std::max(most_runs, outcome.runs);
  }
  const bool met = least_exact == kRows - 1 && most_failed == 1 && most_runs <= kGoalOfRuns;
  run.out << "\nisolate: a batch of 64 with one poisoned row, at each of the 64 places\n"
          << text_of("  at least %zu exact to the bit, at most %zu failed, at most %llu runs%s\n",
                     least_exact, most_failed, static_cast<unsigned long long>(most_runs),
                     verdict(met))
          << std::flush;
  return {{"rows", kRows},
          {"exact_at_least", least_exact},
          {"failed_at_most", most_failed},
          {"handler_runs_at_most", most_runs},
          {"goal_handler_runs", kGoalOfRuns},
          {"met", met}};
}

}  // namespace batch_benchmark
