#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <vector>

#include "rl_benchmark/options.hpp"
#include "rl_benchmark/record.hpp"

namespace rl_benchmark {

/// The memory, in bytes, of a process that has loaded LibTorch and done nothing else.
struct LoadedMemory {
  std::int64_t private_memory = 0;
  std::int64_t resident_memory = 0;
};

/// The report. The keys at the top and in each of `benchmark_results` are those of the original's
/// coordinator.py (`agent latency (seconds)`, with `p50`) and of its plot_benchmark_report.py
/// (`agent latency`, with `50`), which differ, plus additional keys. Runs without a sample are left
/// out.
nlohmann::ordered_json report_json(const Options& options, const std::vector<RunRecord>& runs,
                                   const LoadedMemory& loaded);

/// Prints the original's banner and table of a report, column for column, and a line for each run
/// with additional figures. Latencies have six decimals; the original has three.
void print_report(std::ostream& out, const nlohmann::ordered_json& report);

}  // namespace rl_benchmark
