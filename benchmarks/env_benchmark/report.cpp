#include "env_benchmark/report.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/machine.hpp"
#include "common/statistics.hpp"

namespace env_benchmark {

double median_free(const Record& record) { return batchrpc_examples::median(record.free); }

Measured median_of(const std::vector<Measured>& rounds) {
  const auto median = [&](double Measured::*member) {
    std::vector<double> values;
    for (const Measured& round : rounds)
      values.push_back(round.*member);
    return batchrpc_examples::median(values);
  };
  return {.steps_per_second = median(&Measured::steps_per_second),
          .messages_per_second = median(&Measured::messages_per_second),
          .driver_cpus = median(&Measured::driver_cpus)};
}

void print_heading(const Setting& setting) {
  std::printf(
      "\n%zu lanes in %zu processes, %zu environment%s a group, steps that %s for %g ms: at most "
      "%.0f steps/s\n",
      setting.workers * setting.lanes, setting.workers, setting.group_envs(),
      setting.group_envs() == 1 ? "" : "s", setting.computes ? "compute" : "sleep", setting.step_ms,
      setting.ideal());
  std::printf("%-28s %12s %11s %14s %12s %11s\n", "", "steps/s", "efficiency", "of free lanes",
              "messages/s", "driver CPUs");
  std::fflush(stdout);
}

void print_record(const Options& options, const Record& record) {
  const double ideal = record.setting.ideal();
  const double free = median_free(record);
  std::printf("%-28s %12.0f %9.1f %%\n", "free lanes, no driver", free, free / ideal * 100);
  for (std::size_t i = 0; i < options.variants.size(); ++i) {
    const Variant& variant = options.variants[i];
    const Measured measured = median_of(record.variants[i]);
    char name[64];
    std::snprintf(name, sizeof name, "%s, %zu buffer%s",
                  variant.mode == Mode::sync ? "sync (all workers)" : "recv (any worker)",
                  variant.buffers, variant.buffers == 1 ? "" : "s");
    std::printf("%-28s %12.0f %9.1f %% %12.1f %% %12.0f %11.2f\n", name, measured.steps_per_second,
                measured.steps_per_second / ideal * 100, measured.steps_per_second / free * 100,
                measured.messages_per_second, measured.driver_cpus);
  }
  std::fflush(stdout);
}

void print_published() {
  std::printf(
      "\nRay, published (one environment an actor; tianshou issue 1172): efficiency at steps of\n"
      "  cores      1 s    0.1 s   0.01 s  0.001 s\n"
      "     96     96 %%     71 %%     33 %%      4 %%\n"
      "    384     91 %%     56 %%     11 %%      1 %%\n"
      "   1536     78 %%     26 %%      3 %%      0 %%\n");
}

void print_simulated(const std::vector<Simulated>& simulated, const Costs& costs) {
  std::printf(
      "\nSIMULATED, not measured: machines with a worker of 48 lanes each in virtual time, links "
      "of "
      "50 us and 10 Gbit/s;\nas measured above, a message costs the driver %.1f us, and a step "
      "lasts "
      "%.0f us longer than it should (the mean; it is drawn)\n",
      costs.message_us, costs.step_us);
  std::printf("%-30s %8s %8s %12s %11s\n", "", "lanes", "step", "steps/s", "efficiency");
  for (const Simulated& row : simulated) {
    char name[64];
    std::snprintf(name, sizeof name, "%zu %s, %s, %zu buffers", row.workers.workers,
                  row.measured ? "of the above" : "machines", word(row.variant.mode),
                  row.variant.buffers);
    std::printf("%-30s %8zu %5g ms %12.0f %9.1f %%", name, row.workers.workers * row.workers.lanes,
                row.workers.step_ms, row.steps_per_second, row.steps_per_second / row.ideal * 100);
    if (row.measured) {
      std::printf("   measured: %.1f %%, so it is off by %+.1f %%", *row.measured / row.ideal * 100,
                  (row.steps_per_second / *row.measured - 1) * 100);
    }
    std::printf("\n");
  }
}

nlohmann::json report_json(const Options& options, const std::vector<Record>& records,
                           const std::vector<Simulated>& simulated, const Costs& costs) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Record& record : records) {
    const Setting& setting = record.setting;
    nlohmann::json variants = nlohmann::json::array();
    for (std::size_t i = 0; i < options.variants.size(); ++i) {
      std::vector<double> rates;
      for (const Measured& round : record.variants[i])
        rates.push_back(round.steps_per_second);
      const Measured measured = median_of(record.variants[i]);
      variants.push_back({{"mode", word(options.variants[i].mode)},
                          {"buffers", options.variants[i].buffers},
                          {"steps_per_second", measured.steps_per_second},
                          {"steps_per_second_rounds", rates},
                          {"efficiency", measured.steps_per_second / setting.ideal()},
                          {"of_free_lanes", measured.steps_per_second / median_free(record)},
                          {"messages_per_second", measured.messages_per_second},
                          {"driver_cpus", measured.driver_cpus}});
    }
    rows.push_back({{"workers", setting.workers},
                    {"lanes", setting.workers * setting.lanes},
                    {"envs_per_group", setting.group_envs()},
                    {"step_ms", setting.step_ms},
                    {"computes", setting.computes},
                    {"ideal_steps_per_second", setting.ideal()},
                    {"free_lanes_steps_per_second", median_free(record)},
                    {"free_lanes_steps_per_second_rounds", record.free},
                    {"variants", variants}});
  }
  nlohmann::json simulations = nlohmann::json::array();
  for (const Simulated& row : simulated) {
    simulations.push_back(
        {{"workers", row.workers.workers},
         {"lanes", row.workers.workers * row.workers.lanes},
         {"step_ms", row.workers.step_ms},
         {"latency_us", row.workers.latency_us},
         {"mode", word(row.variant.mode)},
         {"buffers", row.variant.buffers},
         {"steps_per_second", row.steps_per_second},
         {"efficiency", row.steps_per_second / row.ideal},
         {"measured_steps_per_second", row.measured ? nlohmann::json(*row.measured) : nullptr}});
  }
  return {{"benchmark", "env_benchmark"},
          {"machine", batchrpc_examples::machine_report()},
          {"seconds", options.setting.seconds},
          {"rounds", options.rounds},
          {"settings", rows},
          {"simulated", simulations},
          {"simulated_costs", {{"message_us", costs.message_us}, {"step_us", costs.step_us}}}};
}

}  // namespace env_benchmark
