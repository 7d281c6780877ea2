#include "rl_benchmark/report.hpp"

#include <torch/version.h>

#include <array>
#include <batchrpc/base/version.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/machine.hpp"
#include "rl_benchmark/metrics.hpp"

namespace rl_benchmark {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kMetricNames{"agent latency (seconds)", "agent throughput",
                                  "observer latency (seconds)", "observer throughput"};

// Percentiles under "50" and under "p50".
Json percentiles_json(const Percentiles& percentiles) {
  Json json;
  for (std::size_t i = 0; i < kPercents.size(); ++i)
    json[std::to_string(kPercents[i])] = percentiles[i];
  for (std::size_t i = 0; i < kPercents.size(); ++i)
    json["p" + std::to_string(kPercents[i])] = percentiles[i];
  return json;
}

Json metrics_json(const Metrics& metrics) {
  const Json agent_latency = percentiles_json(metrics.agent_latency);
  const Json observer_latency = percentiles_json(metrics.observer_latency);
  return {{"agent latency (seconds)", agent_latency},
          {"agent latency", agent_latency},
          {"agent throughput", percentiles_json(metrics.agent_throughput)},
          {"observer latency (seconds)", observer_latency},
          {"observer latency", observer_latency},
          {"observer throughput", percentiles_json(metrics.observer_throughput)},
          {"actions_per_s", metrics.actions_per_s()},
          {"actions", metrics.actions},
          {"policy_runs", metrics.policy_runs},
          {"seconds", metrics.seconds}};
}

Json settings_json(const Options& options, std::size_t run) {
  Json json;
  for (const Argument& argument : options.arguments) {
    const bool swept = argument.name == options.x_axis;
    json[argument.name] = value_json(argument.name, swept ? options.x_values[run] : argument.text);
  }
  return json;
}

std::optional<Json> run_json(const Options& options, std::size_t number, const RunRecord& run,
                             const LoadedMemory& loaded) {
  if (run.episodes.empty()) return std::nullopt;
  const Counted counted = rl_benchmark::counted(run);
  const auto metrics = metrics_of(run.episodes, counted.first, counted.last);
  if (!metrics) return std::nullopt;
  Json json = metrics_json(*metrics);
  const auto apart = [&run](bool is_there, std::size_t episode) {
    const auto of_one = is_there ? metrics_of(run.episodes, episode, episode + 1) : std::nullopt;
    return of_one ? metrics_json(*of_one) : Json(nullptr);
  };
  const std::size_t last = run.episodes.size() - 1;
  json["warm_up"] = apart(true, 0);
  json["cut"] = apart(run.episodes[last].cut, last);
  json["only_warm_up"] = counted.first == 0;
  json["episodes"] = counted.last - counted.first;
  json["steps"] = run.setting.steps;
  json["observers"] = run.setting.observers();
  json["incomplete"] = run.incomplete.empty() ? Json(nullptr) : Json(run.incomplete);
  json["gradients"] = !run.setting.inference;
  json["start_to_first_action_s"] =
      run.start_to_first_action ? Json(*run.start_to_first_action) : Json(nullptr);
  json["agent_rss_bytes"] = run.resident_memory;
  json["agent_anonymous_bytes"] = run.private_memory;
  json["agent_threads"] = run.threads;
  json["loaded_rss_bytes"] = loaded.resident_memory;
  json["loaded_anonymous_bytes"] = loaded.private_memory;
  json["settings"] = settings_json(options, number);
  Json seeds;
  for (int rank = 1; rank < run.setting.world_size; ++rank)
    seeds.push_back(run.setting.seed + static_cast<std::uint64_t>(rank));
  json["seeds"] = std::move(seeds);
  json["machine"] = batchrpc_examples::machine_report();
  json["versions"] = {
      {"batchrpc", batchrpc::version()}, {"libtorch", TORCH_VERSION}, {"compiler", __VERSION__}};
  if (!options.x_axis.empty())
    json[options.x_axis] = value_json(options.x_axis, options.x_values[number]);
  return json;
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size() + 1, width), ' ');
  return text;
}

// Formats a value as Python prints it.
std::string python_text(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string text_of(const char* format, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, value);  // NOLINT: literals below
  return text.data();
}

void print_more(std::ostream& out, const Json& run) {
  constexpr double kMiB = 1 << 20;
  const double agent_memory = run.at("agent_anonymous_bytes").get<double>() -
                              run.at("loaded_anonymous_bytes").get<double>();
  out << text_of("%.0f actions/s of the whole system", run.at("actions_per_s").get<double>());
  if (!run.at("warm_up").is_null())
    out << text_of(" (warm-up: %.0f)", run.at("warm_up").at("actions_per_s").get<double>());
  out << ", " << run.at("actions") << " actions, "
      << text_of("%.1f a run of the policy",
                 run.at("actions").get<double>() / run.at("policy_runs").get<double>());
  if (!run.at("start_to_first_action_s").is_null())
    out << text_of("; first action after %.2f s", run.at("start_to_first_action_s").get<double>());
  out << text_of("; agent: %.0f MiB beside LibTorch", agent_memory / kMiB) << '\n';
  if (!run.at("incomplete").is_null())
    out << "INCOMPLETE: " << python_text(run.at("incomplete")) << '\n';
}

}  // namespace

Json report_json(const Options& options, const std::vector<RunRecord>& runs,
                 const LoadedMemory& loaded) {
  Json json;
  for (const Argument& argument : options.arguments) {
    if (argument.name != options.x_axis)
      json[argument.name] = value_json(argument.name, argument.text);
  }
  json["output_file_path"] = options.output_file_path;
  if (!options.x_axis.empty()) json["x_axis_name"] = options.x_axis;
  Json results = Json::array();
  for (std::size_t number = 0; number < runs.size(); ++number) {
    if (auto run = run_json(options, number, runs[number], loaded))
      results.push_back(std::move(*run));
  }
  json["benchmark_results"] = std::move(results);
  return json;
}

void print_report(std::ostream& out, const Json& report) {
  constexpr std::size_t kWidth = 10;
  const std::string line(62, '-');
  out << line << "\nbatchrpc benchmark reinforcement learning suite\n" << line << '\n';
  for (const auto& [key, value] : report.items()) {
    if (key != "benchmark_results") out << key << " : " << python_text(value) << '\n';
  }

  std::string heading;
  std::string subheading;
  std::string label;
  if (report.contains("x_axis_name")) {
    label = padded(report.at("x_axis_name").get<std::string>() + " |", kWidth);
    heading = label;
    subheading = std::string(label.size(), ' ');
  }
  for (const char* metric : kMetricNames) {
    heading += padded(metric, kWidth * kPercents.size());
    for (const int percent : kPercents)
      subheading += padded("p" + std::to_string(percent), kWidth);
  }
  out << heading << '\n' << subheading << '\n';
  for (const Json& run : report.at("benchmark_results")) {
    if (!label.empty())
      out << padded(python_text(run.at(report.at("x_axis_name").get<std::string>())), label.size());
    for (const std::string metric : kMetricNames) {
      const char* format = metric.ends_with("(seconds)") ? "%.6f" : "%.0f";
      for (const int percent : kPercents)
        out << padded(text_of(format, run.at(metric).at(std::to_string(percent)).get<double>()),
                      kWidth);
    }
    out << '\n';
  }
  for (const Json& run : report.at("benchmark_results")) {
    if (!label.empty())
      out << padded(python_text(run.at(report.at("x_axis_name").get<std::string>())), label.size());
    print_more(out, run);
  }
}

}  // namespace rl_benchmark
