#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rl_benchmark/setting.hpp"

namespace rl_benchmark {

/// What was measured in an episode, by all agents and observers.
struct EpisodeRecord {
  bool cut = false;          ///< ended early, so that its times are those of its end, too
  double seconds = 0;        ///< from the order to start until all observers had returned
  std::int64_t actions = 0;  ///< that observers have got
  std::vector<double> agent_latency{};     ///< seconds, of each run of a policy
  std::vector<double> agent_throughput{};  ///< requests of that run ÷ its latency
  std::vector<double> observer_latency{};  ///< seconds, of each action
};

/// What was measured in a run.
struct RunRecord {
  Setting setting{};
  std::vector<EpisodeRecord> episodes{};  ///< the first one is for warming up; the last may be cut
  /// From the start of the program to the first action of the run, its processes' start included;
  /// unknown where another program has started them.
  std::optional<double> start_to_first_action{};
  /// Of the agent's process, the largest of several agents, at the end of an episode.
  /// @{
  std::int64_t private_memory = 0;
  std::int64_t resident_memory = 0;
  std::int32_t threads = 0;
  /// @}
  std::string incomplete{};  ///< why it ended early; empty when it did not
  bool interrupted = false;  ///< by a signal, which may have come after its last episode
};

}  // namespace rl_benchmark
