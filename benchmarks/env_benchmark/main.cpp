// Environments of other processes, stepped through VectorEnv, beside the same ones stepping freely.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "common/command_line.hpp"
#include "common/interrupt.hpp"
#include "env_benchmark/options.hpp"
#include "env_benchmark/report.hpp"
#include "env_benchmark/simulation.hpp"
#include "env_benchmark/world.hpp"

namespace {

using namespace env_benchmark;

Record measure(const Options& options, double step_ms) {
  Record record{.setting = options.setting};
  record.setting.step_ms = step_ms;
  record.variants.resize(options.variants.size());
  const StepTime time = make_step_time(step_ms, options.setting.computes);
  print_heading(record.setting);
  const World world(record.setting, time);
  const batchrpc_examples::InterruptFlag interrupts;
  for (int round = 0; round < options.rounds; ++round) {
    record.free.push_back(world.run_free());
    for (std::size_t i = 0; i < options.variants.size(); ++i)
      record.variants[i].push_back(world.drive(options.variants[i], interrupts));
  }
  print_record(options, record);
  return record;
}

// Of the first setting: the driver's time for a message, and how long a step really lasts.
Costs costs_of(const Record& record) {
  double messages = 0;
  double cpu = 0;
  for (const auto& rounds : record.variants) {
    messages += median_of(rounds).messages_per_second;
    cpu += median_of(rounds).driver_cpus;
  }
  return {.message_us = cpu / messages * 1e6,
          .step_us = record.setting.step_ms * 1e3 *
                     std::max(record.setting.ideal() / median_free(record) - 1, 0.0)};
}

std::vector<Simulated> simulate_all(const Options& options, const Record& record,
                                    const Costs& costs) {
  std::vector<Simulated> rows;
  const auto add = [&](const SimulatedWorkers& workers, const Variant& variant,
                       std::optional<double> measured) {
    rows.push_back({.workers = workers,
                    .variant = variant,
                    .steps_per_second = simulate(workers, variant, costs),
                    .ideal = static_cast<double>(workers.workers * workers.envs_per_worker) /
                             (workers.step_ms / 1e3),
                    .measured = measured});
  };
  for (std::size_t i = 0; i < options.variants.size(); ++i) {
    const Setting& setting = record.setting;
    add({.workers = setting.workers,
         .envs_per_worker = setting.envs_per_worker,
         .lanes = setting.lanes,
         .step_ms = setting.step_ms,
         .latency_us = 5},
        options.variants[i], median_of(record.variants[i]).steps_per_second);
  }
  for (const std::size_t nodes : options.simulated_nodes) {
    for (const double step_ms : {100.0, 10.0, 1.0})
      add({.workers = nodes, .step_ms = step_ms}, {Mode::recv, 2}, std::nullopt);
  }
  return rows;
}

int run(int argc, const char* const* argv) {
  const auto options = parse_options(argc, argv);
  if (!options) return 0;
  std::vector<Record> records;
  for (const double step_ms : options->step_ms)
    records.push_back(measure(*options, step_ms));
  if (!options->setting.computes) print_published();
  Costs costs;
  std::vector<Simulated> simulated;
  if (!options->simulated_nodes.empty()) {
    costs = costs_of(records.front());
    simulated = simulate_all(*options, records.front(), costs);
    print_simulated(simulated, costs);
  }
  if (!options->json.empty()) {
    batchrpc_examples::write_file(options->json,
                                  report_json(*options, records, simulated, costs).dump(2) + "\n");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return batchrpc_examples::run_program("env_benchmark", &run, argc, argv);
}
