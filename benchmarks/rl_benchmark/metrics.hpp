#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "rl_benchmark/record.hpp"

namespace rl_benchmark {

/// The percentiles that the original reports.
inline constexpr std::array kPercents{50, 75, 90, 95};
using Percentiles = std::array<double, kPercents.size()>;

/// The original's four metrics, over all samples of some episodes.
struct Metrics {
  Percentiles agent_latency{};        ///< seconds
  Percentiles agent_throughput{};     ///< requests/s
  Percentiles observer_latency{};     ///< seconds
  Percentiles observer_throughput{};  ///< actions/s of one observer

  double seconds = 0;            ///< duration of the episodes
  std::int64_t actions = 0;      ///< of all observers
  std::int64_t policy_runs = 0;  ///< of all agents
  [[nodiscard]] double actions_per_s() const { return static_cast<double>(actions) / seconds; }
};

/// The metrics of the episodes from `first` to `last`, `last` excluded. Nothing if they have no
/// sample.
std::optional<Metrics> metrics_of(const std::vector<EpisodeRecord>& episodes, std::size_t first,
                                  std::size_t last);

/// The episodes that count: all except the first, which is for warming up, and a cut one. If there
/// are no others, these count.
struct Counted {
  std::size_t first = 0;
  std::size_t last = 0;  ///< one past the last
};
Counted counted(const RunRecord& run);

}  // namespace rl_benchmark
