#include "rl_benchmark/metrics.hpp"

#include <algorithm>

#include "common/statistics.hpp"

namespace rl_benchmark {
namespace {

Percentiles percentiles_of(std::vector<double> samples) {
  const std::vector<double> percents(kPercents.begin(), kPercents.end());
  const auto values = batchrpc_examples::percentiles(std::move(samples), percents);
  Percentiles percentiles{};
  std::copy(values.begin(), values.end(), percentiles.begin());
  return percentiles;
}

void append(std::vector<double>& to, const std::vector<double>& samples) {
  to.insert(to.end(), samples.begin(), samples.end());
}

}  // namespace

std::optional<Metrics> metrics_of(const std::vector<EpisodeRecord>& episodes, std::size_t first,
                                  std::size_t last) {
  Metrics metrics;
  EpisodeRecord all;
  for (std::size_t i = first; i < last; ++i) {
    metrics.seconds += episodes[i].seconds;
    metrics.actions += episodes[i].actions;
    append(all.agent_latency, episodes[i].agent_latency);
    append(all.agent_throughput, episodes[i].agent_throughput);
    append(all.observer_latency, episodes[i].observer_latency);
  }
  if (all.agent_latency.empty() || all.observer_latency.empty()) return std::nullopt;
  metrics.policy_runs = static_cast<std::int64_t>(all.agent_latency.size());
  std::vector<double> observer_throughput;
  for (const double latency : all.observer_latency)
    observer_throughput.push_back(1 / latency);
  metrics.agent_latency = percentiles_of(std::move(all.agent_latency));
  metrics.agent_throughput = percentiles_of(std::move(all.agent_throughput));
  metrics.observer_latency = percentiles_of(std::move(all.observer_latency));
  metrics.observer_throughput = percentiles_of(std::move(observer_throughput));
  return metrics;
}

Counted counted(const RunRecord& run) {
  Counted counted{.first = 0, .last = run.episodes.size()};
  if (counted.last > 1 && run.episodes.back().cut) --counted.last;
  if (counted.last > 1) counted.first = 1;
  return counted;
}

}  // namespace rl_benchmark
