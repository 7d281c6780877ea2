#include "env_benchmark/options.hpp"

#include <CLI/App.hpp>
#include <algorithm>

#include "common/command_line.hpp"
#include "common/meeting_place.hpp"
#include "common/option_checks.hpp"
#include "env_benchmark/calibration.hpp"

namespace env_benchmark {

namespace examples = batchrpc_examples;
using examples::between;

std::optional<Options> parse_options(int argc, const char* const* argv) {
  const auto parser = examples::make_parser(
      "Measures environments that are stepped by workers in their own processes, and compares them "
      "with the same environments stepping freely, by the fraction of time spent in steps. Steps "
      "sleep or compute.");
  CLI::App& app = *parser;
  Options options;
  std::vector<std::size_t> buffers{1, 2};
  std::vector<std::string> modes{"sync", "recv"};
  std::size_t lanes = 0;
  std::vector<double> step_ms{1};
  std::vector<std::size_t> observation_bytes{16};
  Setting setting;
  app.add_option("--workers", setting.workers, "worker processes")
      ->check(between(1, 256))
      ->capture_default_str();
  app.add_option("--envs-per-worker", setting.envs_per_worker,
                 "environments per message; two buffers have twice as many")
      ->check(between(1, 65536))
      ->capture_default_str();
  app.add_option("--env-threads", lanes,
                 "threads of a worker, each of which steps one group of environments at a time; "
                 "by default one per environment")
      ->check(between(1, 1024));
  app.add_option("--step-ms", step_ms, "duration of a step of a group; a list is allowed")
      ->delimiter(',')
      ->check(between(0.01, 10000.0))
      ->capture_default_str();
  app.add_option(
         "--observation-bytes", observation_bytes,
         "bytes of one environment's observation, such as 28224 (84 x 84 x 4); a list is allowed")
      ->delimiter(',')
      ->check(between(1, 16 << 20))
      ->capture_default_str();
  app.add_flag("--compute", setting.computes, "steps compute instead of sleeping");
  app.add_option("--buffers", buffers, "1, 2 or 1,2")
      ->delimiter(',')
      ->check(between(1, 16))
      ->capture_default_str();
  app.add_option("--mode", modes,
                 "sync: each step waits for all workers; recv: for any; sync,recv: both")
      ->delimiter(',')
      ->check(CLI::IsMember({"sync", "recv"}))
      ->capture_default_str();
  app.add_option(
         "--simulate", options.simulated_nodes,
         "also simulate this many machines of 48 environments each, with costs measured in the "
         "first setting, and check the simulation on others; a list such as 2,4,8,16,32")
      ->delimiter(',')
      ->check(between(1, 64));
  app.add_option("--transport", setting.transport, "transport between the processes")
      ->transform(examples::one_of(examples::transports()));
  app.add_option("--seconds", setting.seconds, "seconds of each measurement")
      ->check(between(0.05, 600.0))
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "rounds; the median counts")
      ->check(between(1, 100))
      ->capture_default_str();
  app.add_option("--json", options.json, "file for the report");
  const bool go = examples::parse_command_line(app, argc, argv, [&] {
    setting.lanes = lanes == 0 ? setting.envs_per_worker : lanes;
    if (setting.envs_per_worker % setting.lanes != 0) {
      throw examples::UsageError("--envs-per-worker: " + std::to_string(setting.envs_per_worker) +
                                 " environments cannot be split evenly among " +
                                 std::to_string(setting.lanes) + " --env-threads");
    }
    if (setting.workers * setting.lanes > 4096) {
      throw examples::UsageError("--env-threads: " + std::to_string(setting.lanes) +
                                 " threads per worker exceed the limit of 4096 in total");
    }
    const std::size_t largest = *std::ranges::max_element(observation_bytes);
    if (setting.envs_per_worker * largest > std::size_t{1} << 30) {
      throw examples::UsageError("--observation-bytes: " + std::to_string(setting.envs_per_worker) +
                                 " observations of " + std::to_string(largest) +
                                 " bytes exceed the limit of 1 GiB per message");
    }
    if (!options.simulated_nodes.empty() && setting.computes)
      throw examples::UsageError(
          "--simulate and --compute cannot be combined: only steps that sleep can be simulated");
    if (!options.json.empty()) examples::check_writable("--json", options.json);
  });
  if (!go) return std::nullopt;
  for (const std::size_t bytes : observation_bytes) {
    for (const double ms : step_ms) {
      options.settings.push_back(setting);
      options.settings.back().observation_bytes = bytes;
      options.settings.back().step_ms = ms;
    }
  }
  if (!options.simulated_nodes.empty()) add_calibration(options.settings);
  for (const std::string& mode : modes) {
    for (const std::size_t count : buffers)
      options.variants.push_back({mode == "sync" ? Mode::sync : Mode::recv, count});
  }
  return options;
}

}  // namespace env_benchmark
