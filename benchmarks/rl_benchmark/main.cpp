#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "common/command_line.hpp"
#include "common/process.hpp"
#include "common/process_status.hpp"
#include "rl_benchmark/launch.hpp"
#include "rl_benchmark/options.hpp"
#include "rl_benchmark/participant.hpp"
#include "rl_benchmark/report.hpp"

namespace {

using namespace rl_benchmark;
using Clock = std::chrono::steady_clock;

constexpr int kEndedEarly = 3;

// If a run does not begin, the results of earlier runs stay.
std::vector<RunRecord> run_all(const Options& options, Clock::time_point started) {
  std::vector<RunRecord> runs;
  for (const Setting& setting : options.settings) {
    const bool last = runs.size() + 1 == options.settings.size();
    if (options.progress && !options.x_axis.empty())
      std::cout << options.x_axis << " " << options.x_values[runs.size()] << std::endl;
    try {
      runs.push_back(options.rank ? coordinate(setting, options.progress, !last)
                                  : launch(setting, started, options.progress));
    } catch (const std::exception& error) {
      if (runs.empty()) throw;
      runs.push_back({.setting = setting, .incomplete = error.what()});
    }
    if (runs.back().interrupted && !last && runs.back().incomplete.empty())
      runs.back().incomplete = "interrupted before the runs with other values";
    if (!runs.back().incomplete.empty()) break;
    started = Clock::now();
  }
  return runs;
}

int run(int argc, const char* const* argv) {
  const auto started = Clock::now() - batchrpc_examples::process_age();
  const auto status = batchrpc_examples::process_status();
  const auto options = parse_options(argc, argv);
  if (!options) return 0;
  if (options->rank.value_or(0) > 0) {
    for (const Setting& setting : options->settings) {
      if (!run_participant(setting, *options->rank)) break;
    }
    return 0;
  }
  const std::vector<RunRecord> runs = run_all(*options, started);
  const auto report = report_json(
      *options, runs,
      {.private_memory = status.anonymous_bytes, .resident_memory = status.resident_bytes});
  batchrpc_examples::write_file(options->output_file_path, report.dump(2) + "\n");
  print_report(std::cout, report);
  const std::string& incomplete = runs.back().incomplete;
  if (incomplete.empty()) return 0;
  std::cout << std::flush;
  std::cerr << "rl_benchmark: the run ended early: " << incomplete << std::endl;
  return kEndedEarly;
}

}  // namespace

int main(int argc, char** argv) {
  return batchrpc_examples::run_program("rl_benchmark", &run, argc, argv);
}
