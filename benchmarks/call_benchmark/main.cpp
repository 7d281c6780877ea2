#include <csignal>
#include <iostream>
#include <nlohmann/json.hpp>

#include <batchrpc/base/interrupt.hpp>
#include "call_benchmark/child.hpp"
#include "call_benchmark/idle.hpp"
#include "call_benchmark/memory.hpp"
#include "call_benchmark/nodes.hpp"
#include "call_benchmark/options.hpp"
#include "call_benchmark/overload.hpp"
#include "call_benchmark/report.hpp"
#include "call_benchmark/rounds.hpp"
#include "call_benchmark/strangers.hpp"
#include "common/command_line.hpp"

namespace call_benchmark {
namespace {

constexpr int kUsageExit = 2;
constexpr int kInterruptedExit = 128 + SIGINT;

nlohmann::json measure(const Options& options, Interrupt& interrupt) {
  nlohmann::json entries = nlohmann::json::array();
  const auto append = [&](const nlohmann::json& more) {
    entries.insert(entries.end(), more.begin(), more.end());
  };
  if (options.memory) append(measure_memory(options, std::cout, interrupt));
  if (options.idle) append(measure_idle(options, std::cout, interrupt));
  if (options.strangers) append(measure_strangers(options, std::cout, interrupt));
  if (options.overload) append(measure_overload(options, std::cout, interrupt));
  if (options.memory || options.idle || options.strangers || options.overload) return entries;

  print_head(std::cout, options);
  measure_all(options, interrupt, [&](const Group& group) {
    print_group(std::cout, group);
    for (const Row& row : group)
      entries.push_back(to_json(row, group.front(), options));
  });
  return entries;
}

int run(int argc, const char* const* argv) {
  std::optional<Options> options;
  try {
    options = parse_options(argc, argv);
  } catch (const UsageError& error) {
    std::cerr << "call_benchmark: " << error.what() << '\n';
    return kUsageExit;
  }
  if (!options) return 0;
  if (options->role != Role::measure) return run_child(*options);

  Interrupt interrupt;
  const batchrpc::InterruptHandler handler([&](int) { interrupt.raise(); });
  allow_many_descriptors();
  try {
    const nlohmann::json entries = measure(*options, interrupt);
    if (!options->json.empty()) write_json(options->json, entries);
  } catch (const Interrupted&) {
    std::cerr << "interrupted\n";
    return kInterruptedExit;
  }
  return 0;
}

}  // namespace
}  // namespace call_benchmark

int main(int argc, char** argv) {
  return batchrpc_examples::run_program("call_benchmark", &call_benchmark::run, argc, argv);
}
