#include "env_benchmark/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "common/machine.hpp"

namespace env_benchmark {

double Simulated::efficiency() const { return spread_of(windows).median / setting.ideal(); }
double Simulated::off() const {
  return efficiency() - spread_of(measured).median / setting.ideal();
}

double most_off(const std::vector<Simulated>& checks, const Simulated& row) {
  std::map<double, double> most_at;  // by distance
  for (const Simulated& check : checks) {
    if (check.variant != row.variant) continue;
    double& most = most_at[std::abs(std::log(check.setting.step_ms / row.setting.step_ms))];
    most = std::max(most, std::abs(check.off()));
  }
  return most_at.empty() ? 0 : most_at.begin()->second;
}

namespace {

std::string name_of(const Variant& variant) {
  return std::string(word(variant.mode)) + ", " + std::to_string(variant.buffers) +
         (variant.buffers == 1 ? " buffer" : " buffers");
}

std::string percent_of(const std::vector<double>& rates, double ideal) {
  const Spread spread = spread_of(rates);
  char text[48];
  std::snprintf(text, sizeof text, "%.1f +- %.1f %%", spread.median / ideal * 100,
                spread.half_range / ideal * 100);
  return text;
}

void print_efficiency(const std::vector<Record>& records, const Setting& setting,
                      std::size_t variant) {
  const auto at = std::find_if(records.begin(), records.end(),
                               [&](const Record& record) { return record.setting == setting; });
  if (at == records.end()) {
    std::printf("%9s", "-");
  } else {
    std::printf("%7.0f %%", efficiency(*at, variant) * 100);
  }
}

void print_place(const Options& options, const Simulated& row) {
  std::printf("%8zu %6zu %6g ms  %-16s ", row.setting.workers,
              row.setting.workers * row.setting.lanes, row.setting.step_ms,
              name_of(options.variants[row.variant]).c_str());
}

nlohmann::json simulated_json(const Options& options, const Simulated& row) {
  const Setting& setting = row.setting;
  nlohmann::json json{{"workers", setting.workers},
                      {"lanes", setting.workers * setting.lanes},
                      {"step_ms", setting.step_ms},
                      {"observation_bytes", setting.observation_bytes},
                      {"latency_us", row.link.latency_us},
                      {"mode", word(options.variants[row.variant].mode)},
                      {"buffers", options.variants[row.variant].buffers},
                      {"steps_per_second", spread_of(row.windows).median},
                      {"steps_per_second_windows", row.windows},
                      {"efficiency", row.efficiency()}};
  if (!row.measured.empty()) json["measured_steps_per_second"] = spread_of(row.measured).median;
  return json;
}

}  // namespace

void print_heading(const Setting& setting) {
  std::printf(
      "\n%zu lanes in %zu processes, %zu environment%s of %zu bytes a group, steps that %s for %g "
      "ms: at "
      "most %.0f steps/s\n",
      setting.workers * setting.lanes, setting.workers, setting.group_envs(),
      setting.group_envs() == 1 ? "" : "s", setting.observation_bytes,
      setting.computes ? "compute" : "sleep", setting.step_ms, setting.ideal());
  std::printf("%-28s %12s %11s %14s %12s %8s %11s\n", "", "steps/s", "efficiency", "of free lanes",
              "messages/s", "MB/s", "driver CPUs");
  std::fflush(stdout);
}

void print_record(const Options& options, const Record& record) {
  const double ideal = record.setting.ideal();
  const double free = median_free(record);
  double beyond = 0;
  std::printf("%-28s %12.0f %9.1f %%\n", "free lanes, no driver", free, free / ideal * 100);
  for (std::size_t i = 0; i < options.variants.size(); ++i) {
    const Variant& variant = options.variants[i];
    const Measured measured = median_of(record.variants[i]);
    char name[64];
    std::snprintf(name, sizeof name, "%s, %zu buffer%s",
                  variant.mode == Mode::sync ? "sync (all workers)" : "recv (any worker)",
                  variant.buffers, variant.buffers == 1 ? "" : "s");
    std::printf(
        "%-28s %12.0f %9.1f %% %12.1f %% %12.0f %8.0f %11.2f\n", name, measured.steps_per_second,
        efficiency(record, i) * 100, of_free_lanes(record, i) * 100, measured.messages_per_second,
        measured.steps_per_second * static_cast<double>(record.setting.observation_bytes) / 1e6,
        measured.driver_cpus);
    beyond = std::max(beyond, of_free_lanes(record, i) - 1);
  }
  if (beyond > 0.001) {
    std::printf(
        "More than the free lanes, which were measured before or after: the speed of the machine "
        "varied.\n"
        "--seconds %g and more --rounds give closer results.\n",
        4 * record.setting.seconds);
  }
  std::fflush(stdout);
}

void print_beside_published(const Options& options, const std::vector<Record>& records) {
  std::printf(
      "\nEfficiency at steps of                      1 s    0.1 s   0.01 s  0.001 s\n"
      "Ray, published (one environment an actor; tianshou issue 1172)\n"
      "  96 cores                                 96 %%     71 %%     33 %%      4 %%\n"
      "  384 cores                                91 %%     56 %%     11 %%      1 %%\n"
      "  1536 cores                               78 %%     26 %%      3 %%      0 %%\n");
  std::vector<Setting> printed;
  for (const Record& record : records) {
    Setting like = record.setting;  // for steps of any length
    like.step_ms = 0;
    if (std::find(printed.begin(), printed.end(), like) != printed.end()) continue;
    printed.push_back(like);
    std::printf("here: %zu lanes in %zu processes, %zu environment%s a group, %zu bytes each\n",
                like.workers * like.lanes, like.workers, like.group_envs(),
                like.group_envs() == 1 ? "" : "s", like.observation_bytes);
    for (std::size_t i = 0; i < options.variants.size(); ++i) {
      std::printf("  %-35s", name_of(options.variants[i]).c_str());
      for (const double step_ms : {1000.0, 100.0, 10.0, 1.0}) {
        like.step_ms = step_ms;
        print_efficiency(records, like, i);
      }
      std::printf("\n");
    }
  }
}

void print_simulation(const Options& options, const Simulation& simulation) {
  const Setting& first = options.settings.front();
  std::printf(
      "\n"
      "SIMULATED, not measured, in virtual time, with costs measured on %zu lanes in %zu "
      "processes, steps of %g ms;\n"
      "a step takes %.0f us longer than it should (the mean of a random value), and the driver "
      "takes\n",
      first.workers * first.lanes, first.workers, first.step_ms, simulation.costs.front().step_us);
  for (std::size_t i = 0; i < options.variants.size(); ++i) {
    const Costs& costs = simulation.costs[i];
    std::printf(
        "  %-15s %.0f us a message and %.2f ns a byte of observations, within %.0f %% of what was "
        "measured\n",
        name_of(options.variants[i]).c_str(), costs.message_us, costs.byte_ns,
        costs.fit_error * 100);
  }
  std::printf(
      "\n"
      "On this machine, with other settings:\n"
      "%8s %6s %9s  %-16s %16s %16s %14s\n",
      "workers", "lanes", "step", "", "simulated", "measured", "off by");
  for (const Simulated& row : simulation.checks) {
    print_place(options, row);
    std::printf("%16s %16s %+7.1f points\n", percent_of(row.windows, row.setting.ideal()).c_str(),
                percent_of(row.measured, row.setting.ideal()).c_str(), row.off() * 100);
  }
  std::printf(
      "\n"
      "Simulated machines, with links of 50 us and 10 Gbit/s; +- is the error measured above for "
      "the nearest step:\n"
      "%8s %6s %9s  %-16s %16s\n",
      "machines", "lanes", "step", "", "simulated");
  for (const Simulated& row : simulation.machines) {
    print_place(options, row);
    std::printf("%9.0f +- %.0f %%\n", row.efficiency() * 100,
                std::ceil(most_off(simulation.checks, row) * 100));
  }
}

nlohmann::json report_json(const Options& options, const std::vector<Record>& records,
                           const Simulation& simulation) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Record& record : records) {
    const Setting& setting = record.setting;
    nlohmann::json variants = nlohmann::json::array();
    for (std::size_t i = 0; i < options.variants.size(); ++i) {
      const Measured measured = median_of(record.variants[i]);
      variants.push_back({{"mode", word(options.variants[i].mode)},
                          {"buffers", options.variants[i].buffers},
                          {"steps_per_second", measured.steps_per_second},
                          {"steps_per_second_rounds", rates_of(record.variants[i])},
                          {"efficiency", efficiency(record, i)},
                          {"of_free_lanes", of_free_lanes(record, i)},
                          {"messages_per_second", measured.messages_per_second},
                          {"driver_cpus", measured.driver_cpus}});
    }
    rows.push_back({{"workers", setting.workers},
                    {"lanes", setting.workers * setting.lanes},
                    {"envs_per_group", setting.group_envs()},
                    {"step_ms", setting.step_ms},
                    {"observation_bytes", setting.observation_bytes},
                    {"computes", setting.computes},
                    {"ideal_steps_per_second", setting.ideal()},
                    {"free_lanes_steps_per_second", median_free(record)},
                    {"free_lanes_steps_per_second_rounds", record.free},
                    {"variants", variants}});
  }
  nlohmann::json costs = nlohmann::json::array();
  for (std::size_t i = 0; i < simulation.costs.size(); ++i) {
    const Costs& found = simulation.costs[i];
    costs.push_back({{"mode", word(options.variants[i].mode)},
                     {"buffers", options.variants[i].buffers},
                     {"message_us", found.message_us},
                     {"byte_ns", found.byte_ns},
                     {"fit_error", found.fit_error},
                     {"step_us", found.step_us}});
  }
  const auto all = [&](const std::vector<Simulated>& simulated) {
    nlohmann::json array = nlohmann::json::array();
    for (const Simulated& row : simulated)
      array.push_back(simulated_json(options, row));
    return array;
  };
  return {{"benchmark", "env_benchmark"},
          {"machine", batchrpc_examples::machine_report()},
          {"seconds", options.settings.front().seconds},
          {"rounds", options.rounds},
          {"settings", rows},
          {"simulated_costs", costs},
          {"simulated_checks", all(simulation.checks)},
          {"simulated_machines", all(simulation.machines)}};
}

}  // namespace env_benchmark
