#include "env_benchmark/options.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "common/command_line.hpp"
#include "common/meeting_place.hpp"
#include "common/option_checks.hpp"

namespace env_benchmark {

namespace examples = batchrpc_examples;
using examples::between;

std::optional<Options> parse_options(int argc, const char* const* argv) {
  CLI::App app(
      "Measures environments that are stepped by workers in processes of their own, beside the "
      "same "
      "environments stepping freely: how much of the time they step. Steps sleep, or compute.");
  Options options;
  std::vector<std::size_t> buffers{1, 2};
  std::vector<std::string> modes{"sync", "recv"};
  std::size_t lanes = 0;
  Setting& setting = options.setting;
  options.step_ms = {1};
  app.add_option("--workers", setting.workers, "processes")
      ->check(between(1, 256))
      ->capture_default_str();
  app.add_option("--envs-per-worker", setting.envs_per_worker,
                 "environments that one message steps; with two buffers there are twice as many")
      ->check(between(1, 65536))
      ->capture_default_str();
  app.add_option("--env-threads", lanes,
                 "threads of a worker, each of which steps one group of environments at a time; "
                 "without it one a environment")
      ->check(between(1, 1024));
  app.add_option("--step-ms", options.step_ms,
                 "how long a step of a group takes; a list is allowed")
      ->delimiter(',')
      ->check(between(0.01, 10000.0))
      ->capture_default_str();
  app.add_flag("--compute", setting.computes, "steps compute in place of sleeping");
  app.add_option("--buffers", buffers, "1, 2 or 1,2")
      ->delimiter(',')
      ->check(between(1, 16))
      ->capture_default_str();
  app.add_option("--mode", modes, "sync: each step waits for all workers; recv: for any; or both")
      ->delimiter(',')
      ->check(CLI::IsMember({"sync", "recv"}))
      ->capture_default_str();
  app.add_option("--simulate", options.simulated_nodes,
                 "also simulate so many machines of 48 environments each, with the costs that were "
                 "measured; a list such as 2,4,8,16,32")
      ->delimiter(',')
      ->check(between(1, 64));
  app.add_option("--transport", setting.transport, "between the processes")
      ->transform(examples::one_of(examples::transports()));
  app.add_option("--seconds", setting.seconds, "of each measurement")
      ->check(between(0.05, 600.0))
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "of which the median counts")
      ->check(between(1, 100))
      ->capture_default_str();
  app.add_option("--json", options.json, "where the report goes");
  const bool go = examples::parse_command_line(app, argc, argv, [&] {
    setting.lanes = lanes == 0 ? setting.envs_per_worker : lanes;
    if (setting.envs_per_worker % setting.lanes != 0) {
      throw examples::UsageError("--envs-per-worker: " + std::to_string(setting.envs_per_worker) +
                                 " environments do not divide among " +
                                 std::to_string(setting.lanes) + " --env-threads");
    }
    if (setting.workers * setting.lanes > 4096) {
      throw examples::UsageError("--env-threads: " + std::to_string(setting.lanes) +
                                 " threads a worker are more than 4096 in all");
    }
    if (!options.json.empty()) examples::check_writable("--json", options.json);
  });
  if (!go) return std::nullopt;
  setting.step_ms = options.step_ms.front();
  for (const std::string& mode : modes) {
    for (const std::size_t count : buffers)
      options.variants.push_back({mode == "sync" ? Mode::sync : Mode::recv, count});
  }
  return options;
}

}  // namespace env_benchmark
