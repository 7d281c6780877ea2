#pragma once

#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "common/interrupt.hpp"
#include "policy_benchmark/forms.hpp"
#include "policy_benchmark/options.hpp"

namespace policy_benchmark {

/// What a section needs to run.
struct Run {
  const Options& options;
  std::ostream& out;  ///< for tables
  const batchrpc_examples::InterruptFlag& interrupts;
};

/// Figures of one form at one batch size, a value a round.
struct Figures {
  std::vector<double> passes_per_s{};         ///< called directly
  std::vector<double> served_passes_per_s{};  ///< batches that clients got
  std::vector<double> p50_us{};               ///< of a client's call
  std::vector<double> p99_us{};
  std::vector<double> mean_batch{};
};

/// All forms of one network, with one number of threads.
struct Table {
  std::string network{};
  int threads = 1;
  std::vector<std::string> titles{};
  std::vector<std::string> names{};
  std::vector<std::vector<Figures>> figures{};  ///< [form][batch]; the first form is eager
};

void print_head(const Run& run);
/// Forward passes a second, and the speed-up over eager.
void print_direct(const Run& run, const Table& table);
/// The same of what clients got, and what serving costs.
void print_served(const Run& run, const Table& table);
nlohmann::json report_json(const Options& options, const std::vector<Table>& tables);

}  // namespace policy_benchmark
