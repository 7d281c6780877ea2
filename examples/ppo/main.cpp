#include <chrono>
#include <exception>
#include <iostream>
#include <optional>
#include <string>

#include <batchrpc/base/interrupt.hpp>
#include "common/command_line.hpp"
#include "common/notice.hpp"
#include "ppo/options.hpp"
#include "ppo/report.hpp"
#include "ppo/training.hpp"
#include "ppo/workers.hpp"
#include "torch_settings/torch_settings.hpp"

namespace {

using namespace batchrpc_examples;

// Reports a training that has ended early. Without any update there is nothing to report, and
// earlier reports stay.
void report_early_end(const ppo::PpoOptions& options, ppo::TrainingReport report,
                      const std::string& error) {
  if (report.curve.empty()) return;
  report.error = error;
  std::cout << ppo::summary(options, report) << std::endl;
  try {
    ppo::write_results(options, report);
  } catch (const std::exception& unwritten) {
    say(unwritten.what());
  }
}

int run(int argc, const char* const* argv) {
  const auto options = ppo::parse_options(argc, argv);
  if (!options) return 0;
  using Clock = std::chrono::steady_clock;
  Clock::time_point next;  // progress is shown once per second
  std::optional<ppo::Workers> workers;
  const auto progress = [&](const ppo::CurvePoint& point) {
    if (workers) workers->notify_changes(&say);
    if (Clock::now() < next) return;
    next = Clock::now() + std::chrono::seconds(1);
    std::cout << ppo::progress_line(point) << std::endl;
  };
  if (options->rank) {
    say("waiting at " + options->join + " for at most a minute until all " +
        std::to_string(options->workers + 1) + " processes have joined (--rank 0 to " +
        std::to_string(options->workers) + ")" +
        (*options->rank > 0 ? ", or joins a running training" : ""));
  }
  if (options->rank.value_or(0) > 0) {
    ppo::run_worker(*options, *options->rank);
    return 0;
  }
  if (options->policy == ppo::PolicyKind::script && options->policy_path.empty()) {
    say("the policy is TorchScript made by this program, without Python");
  }
  if (options->workers > 0) workers.emplace(*options);  // before this process has threads
  const batchrpc::InterruptFlag interrupts;
  use_torch_threads(options->torch_threads);
  keep_freed_memory();
  std::optional<ppo::Training> training;
  if (workers) {
    training.emplace(*options, workers->envs());
  } else {
    training.emplace(*options);
  }
  ppo::TrainingReport report;
  try {
    report = ppo::train(*training, *options, interrupts, progress, &say);
  } catch (const std::exception& error) {
    report_early_end(*options, training->report(), error.what());
    throw;
  }
  std::cout << ppo::summary(*options, report) << std::endl;
  ppo::write_results(*options, report);
  if (!options->weights.empty()) {
    write_file(options->weights, training->learner().weights_file());
    std::cout << "Wrote " << options->weights << std::endl;
  }
  return options->until && !report.reached ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) { return run_program("ppo", &run, argc, argv); }
