#include <chrono>
#include <iostream>

#include "common/command_line.hpp"
#include "common/interrupt.hpp"
#include "common/notice.hpp"
#include "ppo/options.hpp"
#include "ppo/report.hpp"
#include "ppo/training.hpp"

namespace {

using namespace batchrpc_examples;

int run(int argc, const char* const* argv) {
  const auto options = ppo::parse_options(argc, argv);
  if (!options) return 0;
  using Clock = std::chrono::steady_clock;
  Clock::time_point next;  // progress is shown once a second
  const auto progress = [&next](const ppo::CurvePoint& point) {
    if (Clock::now() < next) return;
    next = Clock::now() + std::chrono::seconds(1);
    std::cout << ppo::progress_line(point) << std::endl;
  };
  const InterruptFlag interrupts;
  const ppo::TrainingReport report = ppo::train(*options, interrupts, progress, &say);
  std::cout << ppo::summary(*options, report) << std::endl;
  ppo::write_results(*options, report);
  return options->until && !report.reached ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) { return run_program("ppo", &run, argc, argv); }
