#include <iostream>
#include <nlohmann/json.hpp>

#include <batchrpc/base/interrupt.hpp>
#include "cartpole/options.hpp"
#include "cartpole/progress_display.hpp"
#include "cartpole/report.hpp"
#include "cartpole/sweep.hpp"
#include "cartpole/training.hpp"
#include "cartpole_observer/observer_process.hpp"
#include "common/command_line.hpp"
#include "common/process.hpp"

namespace {

using namespace batchrpc_examples;

ProgressMode progress_mode(const CartPoleOptions& options) {
  if (options.progress != ProgressMode::automatic) return options.progress;
  return options.until_solved ? ProgressMode::live : ProgressMode::lines;
}

int run_training(const CartPoleOptions& options) {
  const auto started = std::chrono::steady_clock::now() - process_age();
  const batchrpc::InterruptFlag interrupts;
  TrainingReport report;
  {
    ProgressDisplay display(progress_mode(options));
    report = train(options, started, display, interrupts);
  }
  std::cout << summary(options, report) << std::endl;
  write_results(options, training_json(options, report), learning_curve(options, report));
  return options.until_solved && !report.solved_at_episode ? 1 : 0;
}

int run(int argc, const char* const* argv) {
  const auto options = parse_options(argc, argv);
  if (!options) return 0;
  if (!options->sweep.empty()) {
    const batchrpc::InterruptFlag interrupts;
    const auto rows = run_sweep(*options, interrupts);
    write_results(*options, sweep_json(*options, rows), comparison(*options, rows));
    return 0;
  }
  if (options->group.rank.value_or(0) != 0) return run_observer(options->group);
  return run_training(*options);
}

}  // namespace

int main(int argc, char** argv) { return run_program("cartpole", &run, argc, argv); }
