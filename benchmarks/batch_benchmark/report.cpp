#include "batch_benchmark/report.hpp"

#include <torch/version.h>

#include <array>
#include <batchrpc/base/version.hpp>
#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/machine.hpp"
#include "common/statistics.hpp"

namespace batch_benchmark {

std::string text_of(const char* format, ...) {
  std::array<char, 400> text{};
  va_list values;
  va_start(values, format);
  std::vsnprintf(text.data(), text.size(), format, values);
  va_end(values);
  return text.data();
}

nlohmann::json rounds_json(const std::vector<double>& values) {
  return {{"median", batchrpc_examples::median(values)}, {"rounds", values}};
}

double median_ratio(const std::vector<double>& ours, const std::vector<double>& theirs) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < ours.size(); ++i)
    ratios.push_back(ours[i] / theirs.at(i));
  return batchrpc_examples::median(std::move(ratios));
}

const char* verdict(bool met) { return met ? " (met)" : " (missed)"; }

nlohmann::json machine_json() { return batchrpc_examples::machine_report(); }

nlohmann::json versions_json() {
  return {
      {"batchrpc", batchrpc::version()}, {"libtorch", TORCH_VERSION}, {"compiler", __VERSION__}};
}

nlohmann::json settings_json(const Options& options) {
  nlohmann::json batchers = nlohmann::json::array();
  for (const Setting& setting : options.batchers)
    batchers.push_back(setting.name());
  return {
      {"rounds", options.rounds},
      {"seconds", options.seconds},
      {"warm_up", options.warm_up},
      {"observers", options.observers},
      {"transport", options.transport == batchrpc_examples::TransportChoice::tcp ? "tcp" : "unix"},
      {"batchers", batchers},
      {"work", options.work == Work::sleep ? "sleep" : "spin"},
      {"latency_target_ms", options.latency_target_ms},
  };
}

std::string head(const Options& options) {
  const nlohmann::json machine = machine_json();
  const nlohmann::json versions = versions_json();
  return text_of("batchrpc %s, LibTorch %s, %d CPUs (%s); medians of %d rounds of %g s\n",
                 versions["batchrpc"].get<std::string>().c_str(),
                 versions["libtorch"].get<std::string>().c_str(), machine["cpus"].get<int>(),
                 machine["cpu"].get<std::string>().c_str(), options.rounds, options.seconds);
}

}  // namespace batch_benchmark
