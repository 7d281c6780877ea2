#include <algorithm>
#include <catch2/catch.hpp>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/command_line.hpp"
#include "env_benchmark/calibration.hpp"
#include "env_benchmark/options.hpp"
#include "env_benchmark/report.hpp"
#include "env_benchmark/simulation.hpp"
#include "env_benchmark/worker.hpp"

namespace env_benchmark {
namespace env_benchmark_test {

using batchrpc_examples::UsageError;

Options parse(std::initializer_list<const char*> words) {
  std::vector<const char*> all{"env_benchmark"};
  all.insert(all.end(), words);
  return parse_options(static_cast<int>(all.size()), all.data()).value();
}

// A round of a driver with these costs, and of lanes late by 100 us.
Record record_of(const Setting& setting, double message_us, double byte_ns) {
  const double rate = setting.ideal() / (1 + 0.1 / setting.step_ms);
  const double messages = rate / static_cast<double>(setting.envs_per_worker);
  const double us = message_us + byte_ns / 1e3 * static_cast<double>(setting.message_bytes());
  return {.setting = setting,
          .free = {rate},
          .variants = {{{.steps_per_second = rate,
                         .messages_per_second = messages,
                         .driver_cpus = messages * us / 1e6}}}};
}

double efficiency(const Setting& setting, const Costs& costs, const Variant& variant) {
  const std::vector<double> windows = simulate(setting, {}, variant, costs);
  const Spread spread = spread_of(windows);
  CHECK(windows.size() >= 3);
  CHECK(spread.half_range < 0.002 * spread.median);
  return spread.median / setting.ideal();
}

constexpr Variant kTwoBuffers{.mode = Mode::recv, .buffers = 2};
constexpr Setting kSmall{.workers = 2, .envs_per_worker = 4, .lanes = 4, .step_ms = 1};

TEST_CASE("costs a message and a byte are found from messages of several sizes") {
  const Costs costs = fit({{96, 20.0192}, {24576, 24.9152}, {169344, 53.8688}});
  CHECK(costs.message_us == Approx(20));
  CHECK(costs.byte_ns == Approx(0.2));
  CHECK(costs.fit_error < 1e-6);
}

TEST_CASE("a small message counts as much as a large one, and what does not fit is said") {
  const Costs costs = fit({{0, 10}, {1000, 40}, {100'000, 1000}});
  CHECK(costs.message_us > 5);
  CHECK(costs.message_us < 20);
  CHECK(costs.fit_error > 0.1);
}

TEST_CASE("messages of one size, or that cost less the larger they are, tell nothing of a byte") {
  CHECK(fit({{96, 20}, {96, 20}}).message_us == Approx(20));
  CHECK(fit({{96, 20}}).byte_ns == 0);
  const Costs falling = fit({{96, 21}, {24576, 19}});
  CHECK(falling.byte_ns == 0);
  CHECK(falling.message_us > 19);
  CHECK(falling.message_us < 21);
}

TEST_CASE("a simulation is calibrated on one setting and checked on others") {
  const Options options = parse({"--simulate", "2"});
  const Setting& first = options.settings.front();
  std::vector<Record> records;
  std::size_t calibrating = 0;
  for (const Setting& setting : options.settings) {
    const bool calibrates_it = calibrates(setting, first);
    calibrating += calibrates_it ? 1 : 0;
    CHECK(std::ranges::count(options.settings, setting) == 1);
    CHECK((calibrates_it || setting.lanes != first.lanes || setting.step_ms != first.step_ms));
    // What is only for checks has other costs, which are not to be used.
    records.push_back(calibrates_it ? record_of(setting, 20, 0.2) : record_of(setting, 99, 9));
  }
  CHECK(calibrating == 3);
  CHECK(options.settings.size() == 6);
  const Costs costs = costs_of(records, 0);
  CHECK(costs.message_us == Approx(20));
  CHECK(costs.byte_ns == Approx(0.2));
  CHECK(costs.step_us == Approx(100));
}

TEST_CASE("without a simulation each size of observations is measured with each time of a step") {
  const Options options =
      parse({"--step-ms", "1,10", "--observation-bytes", "16,28224", "--buffers", "2"});
  REQUIRE(options.settings.size() == 4);
  CHECK(options.settings[3].step_ms == 10);
  CHECK(options.settings[3].message_bytes() == 6 * 28224);
}

// 2 workers of 4 lanes, each of which steps 3 environments in 10 ms: 24 steps in 10 ms.
constexpr Setting kThrees{.workers = 2, .envs_per_worker = 12, .lanes = 4, .step_ms = 10};

TEST_CASE("at most as many environments step at once as workers have, however many lanes") {
  CHECK(kThrees.group_envs() == 3);
  CHECK(kThrees.ideal() == Approx(2400));
  Setting one_lane = kThrees;
  one_lane.lanes = 1;
  CHECK(one_lane.ideal() == Approx(2400));
}

TEST_CASE("free lanes that sleep are counted once, and never faster than they can be") {
  Setting setting = kThrees;
  setting.workers = 1;
  const double rate = run_free(setting, make_step_time(setting.step_ms, false), 0.1);
  CHECK(rate <= setting.ideal());
  CHECK(rate > 0);
}

TEST_CASE("env_benchmark reports medians of its rounds, beside the ideal and beside free lanes") {
  const Record record{.setting = kThrees,
                      .free = {2000, 1500, 2100},
                      .variants = {{{.steps_per_second = 600}},
                                   {{.steps_per_second = 1700, .messages_per_second = 150},
                                    {.steps_per_second = 1800, .messages_per_second = 120},
                                    {.steps_per_second = 2300, .messages_per_second = 140}}}};
  const Options options = parse({"--mode", "recv"});
  const auto json = report_json(options, {record}, {}).at("settings").at(0);
  CHECK(json.at("lanes") == 8);
  CHECK(json.at("envs_per_group") == 3);
  CHECK(json.at("ideal_steps_per_second").get<double>() == Approx(2400));
  CHECK(json.at("free_lanes_steps_per_second") == 2000.0);
  const auto& first = json.at("variants").at(0);
  CHECK(first.at("buffers") == 1);
  CHECK(first.at("efficiency").get<double>() == Approx(0.25));
  CHECK(first.at("of_free_lanes").get<double>() == Approx(0.3));
  const auto& second = json.at("variants").at(1);
  CHECK(second.at("mode") == "recv");
  CHECK(second.at("buffers") == 2);
  CHECK(second.at("steps_per_second") == 1800.0);
  CHECK(second.at("messages_per_second") == 140.0);
  CHECK(second.at("efficiency").get<double>() == Approx(0.75));
  CHECK(second.at("of_free_lanes").get<double>() == Approx(0.9));
}

TEST_CASE("a simulation is off by as much as its checks of the same variant and nearest step") {
  const auto simulated = [](double step_ms, std::size_t variant, double steps, double measured) {
    Simulated row{.setting = kThrees, .variant = variant, .windows = {steps}};
    row.setting.step_ms = step_ms;
    if (measured > 0) row.measured = {measured};
    return row;
  };
  const Simulated machines = simulated(100, 0, 180, 0);  // of 240
  CHECK(machines.efficiency() == Approx(0.75));
  CHECK(most_off({}, machines) == 0);
  const std::vector<Simulated> checks{simulated(1, 0, 24000, 12000),  // steps farther from 100 ms
                                      simulated(10, 0, 2160, 1920),   // 0.9, measured 0.8
                                      simulated(10, 0, 1200, 1680),   // 0.5, measured 0.7: the most
                                      simulated(10, 1, 2400, 240)};   // another variant
  CHECK(checks[1].off() == Approx(0.1));
  CHECK(checks[2].off() == Approx(-0.2));
  CHECK(most_off(checks, machines) == Approx(0.2));
  CHECK(most_off(checks, simulated(2, 0, 1, 0)) == Approx(0.5));
  const auto json = report_json(parse({}), {}, {.checks = checks, .machines = {machines}});
  CHECK(json.at("simulated_machines").at(0).at("efficiency").get<double>() == Approx(0.75));
  CHECK(json.at("simulated_checks").at(1).at("measured_steps_per_second") == 1920.0);
}

TEST_CASE("options of env_benchmark that cannot be are refused") {
  CHECK_THROWS_AS(parse({"--observation-bytes", "0"}), UsageError);
  CHECK_THROWS_WITH(parse({"--observation-bytes", "16,16777216", "--envs-per-worker", "96"}),
                    Catch::Contains("1 GiB"));
  CHECK_THROWS_WITH(parse({"--simulate", "2", "--compute"}), Catch::Contains("--compute"));
}

TEST_CASE("simulated environments step all the time where nothing costs anything") {
  CHECK(efficiency(kSmall, {}, kTwoBuffers) > 0.995);
  CHECK(efficiency(kSmall, {}, {.mode = Mode::sync, .buffers = 1}) == Approx(1 / 1.1).margin(0.02));
}

TEST_CASE("simulated timers are late, and more machines do not make that better") {
  const Costs costs{.message_us = 2, .step_us = 100};
  const double two = efficiency(kSmall, costs, kTwoBuffers);
  CHECK(two < 1 / 1.1 + 0.002);
  CHECK(two > 0.8);
  Setting more = kSmall;
  more.workers = 8;
  CHECK(efficiency(more, costs, kTwoBuffers) == Approx(two).margin(0.005));
}

TEST_CASE("a simulated driver handles as many messages and bytes as it has time for") {
  // 400 us a message, of 4 workers that could send one each a millisecond
  Setting setting = kSmall;
  setting.workers = 4;
  CHECK(efficiency(setting, {.message_us = 400}, kTwoBuffers) == Approx(1 / 1.6).margin(0.01));
  setting.observation_bytes = 1000;
  CHECK(efficiency(setting, {.byte_ns = 100}, kTwoBuffers) == Approx(1 / 1.6).margin(0.01));
}

}  // namespace env_benchmark_test
}  // namespace env_benchmark
