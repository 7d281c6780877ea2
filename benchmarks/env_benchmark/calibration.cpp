#include "env_benchmark/calibration.hpp"

#include <algorithm>
#include <cmath>

#include "common/least_squares.hpp"

namespace env_benchmark {
namespace {
constexpr std::size_t kFittedBytes[] = {16, 4096, 28224};  // sizes of an observation
}

Costs fit(const std::vector<MessageCost>& messages) {
  std::vector<batchrpc_benchmarks::LinePoint> points;
  double weights = 0;
  double weighted = 0;
  for (const auto& [bytes, us] : messages) {
    const double weight = 1 / (us * us);
    points.push_back({.x = bytes, .y = us, .weight = weight});
    weights += weight;
    weighted += weight * us;
  }
  Costs costs{.message_us = weighted / weights};
  const auto [least, most] = std::ranges::minmax(messages, {}, &MessageCost::bytes);
  if (most.bytes > least.bytes) {
    const auto line = batchrpc_benchmarks::least_squares(points);
    if (line.slope > 0) {
      costs.message_us = std::max(line.at_zero, 0.0);
      costs.byte_ns = line.slope * 1e3;
    }
  }
  for (const auto& [bytes, us] : messages) {
    const double fitted = costs.message_us + costs.byte_ns / 1e3 * bytes;
    costs.fit_error = std::max(costs.fit_error, std::abs(fitted / us - 1));
  }
  return costs;
}

void add_calibration(std::vector<Setting>& settings) {
  const Setting first = settings.front();
  const auto add = [&](const Setting& setting) {
    if (std::ranges::find(settings, setting) == settings.end()) settings.push_back(setting);
  };
  for (const std::size_t bytes : kFittedBytes) {
    Setting other = first;
    other.observation_bytes = bytes;
    add(other);
  }
  for (const double slower : {1.0, 10.0}) {
    Setting other = first;
    other.step_ms *= slower;
    add(other);
    other.workers = 2;
    other.lanes = other.envs_per_worker = kMachineLanes;
    add(other);
  }
}

bool calibrates(const Setting& setting, const Setting& first) {
  Setting same = setting;
  same.observation_bytes = first.observation_bytes;
  return same == first;
}

Costs costs_of(const std::vector<Record>& records, std::size_t variant) {
  const Record& first = records.front();
  std::vector<MessageCost> messages;
  for (const Record& record : records) {
    if (!calibrates(record.setting, first.setting)) continue;
    const Measured measured = median_of(record.variants[variant]);
    messages.push_back({.bytes = static_cast<double>(record.setting.message_bytes()),
                        .us = measured.driver_cpus / measured.messages_per_second * 1e6});
  }
  Costs costs = fit(messages);
  costs.step_us =
      first.setting.step_ms * 1e3 * std::max(first.setting.ideal() / median_free(first) - 1, 0.0);
  return costs;
}

}  // namespace env_benchmark
