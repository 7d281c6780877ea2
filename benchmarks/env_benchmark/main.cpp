// Environments of other processes, stepped through VectorEnv, compared with the same ones that step
// freely.
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include <batchrpc/base/interrupt.hpp>
#include "common/command_line.hpp"
#include "env_benchmark/calibration.hpp"
#include "env_benchmark/options.hpp"
#include "env_benchmark/report.hpp"
#include "env_benchmark/simulation.hpp"
#include "env_benchmark/world.hpp"

namespace {

using namespace env_benchmark;

constexpr Link kOneMachine{.latency_us = 5, .bytes_per_second = 0};

Record measure(const Options& options, const Setting& setting) {
  Record record{.setting = setting};
  record.variants.resize(options.variants.size());
  const StepTime time = make_step_time(setting.step_ms, setting.computes);
  print_heading(record.setting);
  const World world(record.setting, time);
  const batchrpc::InterruptFlag interrupts;
  for (int round = 0; round < options.rounds; ++round) {
    record.free.push_back(world.run_free());
    for (std::size_t i = 0; i < options.variants.size(); ++i)
      record.variants[i].push_back(world.drive(options.variants[i], interrupts));
  }
  print_record(options, record);
  return record;
}

Simulation simulate_all(const Options& options, const std::vector<Record>& records) {
  Simulation all;
  const Setting& first = records.front().setting;
  for (std::size_t i = 0; i < options.variants.size(); ++i) {
    const Costs costs = costs_of(records, i);
    all.costs.push_back(costs);
    const auto row = [&](const Setting& setting, const Link& link) {
      return Simulated{.setting = setting,
                       .link = link,
                       .variant = i,
                       .windows = simulate(setting, link, options.variants[i], costs)};
    };
    for (const Record& record : records) {
      if (calibrates(record.setting, first)) continue;
      all.checks.push_back(row(record.setting, kOneMachine));
      all.checks.back().measured = rates_of(record.variants[i]);
    }
    for (const std::size_t nodes : options.simulated_nodes) {
      for (const double step_ms : {100.0, 10.0, 1.0}) {
        all.machines.push_back(row({.workers = nodes,
                                    .envs_per_worker = kMachineLanes,
                                    .lanes = kMachineLanes,
                                    .step_ms = step_ms,
                                    .observation_bytes = first.observation_bytes},
                                   Link{}));
      }
    }
  }
  return all;
}

int run(int argc, const char* const* argv) {
  const auto options = parse_options(argc, argv);
  if (!options) return 0;
  std::vector<Record> records;
  for (const Setting& setting : options->settings)
    records.push_back(measure(*options, setting));
  if (!options->settings.front().computes) print_beside_published(*options, records);
  Simulation simulation;
  if (!options->simulated_nodes.empty()) {
    simulation = simulate_all(*options, records);
    print_simulation(*options, simulation);
  }
  if (!options->json.empty()) {
    batchrpc_examples::write_file(options->json,
                                  report_json(*options, records, simulation).dump(2) + "\n");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return batchrpc_examples::run_program("env_benchmark", &run, argc, argv);
}
