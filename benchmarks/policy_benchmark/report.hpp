#pragma once

#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <string>
#include <vector>

#include <batchrpc/base/interrupt.hpp>
#include "policy_benchmark/forms.hpp"
#include "policy_benchmark/options.hpp"

namespace policy_benchmark {

/// The input of a section.
struct Run {
  const Options& options;
  std::ostream& out;  ///< for tables
  const batchrpc::InterruptFlag& interrupts;
};

/// The figures of one form at one batch size, one value per round.
struct Figures {
  std::vector<double> passes_per_s{};         ///< called directly
  std::vector<double> served_passes_per_s{};  ///< batches that clients received
  std::vector<double> p50_us{};               ///< per client's call
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
/// Forward passes per second, and the speed-up over eager.
void print_direct(const Run& run, const Table& table);
/// The same for the batches that clients received, and the cost of serving.
void print_served(const Run& run, const Table& table);
nlohmann::json report_json(const Options& options, const std::vector<Table>& tables);

}  // namespace policy_benchmark
