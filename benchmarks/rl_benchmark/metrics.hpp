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

/// The original's four metrics, of all samples of some episodes.
struct Metrics {
  Percentiles agent_latency{};        ///< seconds
  Percentiles agent_throughput{};     ///< requests/s
  Percentiles observer_latency{};     ///< seconds
  Percentiles observer_throughput{};  ///< actions/s of one observer

  double seconds = 0;            ///< that the episodes took
  std::int64_t actions = 0;      ///< of all observers
  std::int64_t policy_runs = 0;  ///< of all agents
  [[nodiscard]] double actions_per_s() const { return static_cast<double>(actions) / seconds; }
};

/// Of the episodes from `first` to `last`, the latter left out. Nothing when they have no sample.
std::optional<Metrics> metrics_of(const std::vector<EpisodeRecord>& episodes, std::size_t first,
                                  std::size_t last);

/// What counts of a run: all episodes but the first, which is for warming up, and one that was cut.
/// Where there is no other, these do.
struct Counted {
  std::size_t first = 0;
  std::size_t last = 0;  ///< the one behind the last
};
Counted counted(const RunRecord& run);

}  // namespace rl_benchmark
