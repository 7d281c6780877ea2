#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rl_benchmark/setting.hpp"

namespace rl_benchmark {

/// The measurements of an episode by all agents and observers.
struct EpisodeRecord {
  bool cut = false;                     ///< ended early, so its times include the end
  double seconds = 0;                   ///< from the start order until all observers had returned
  std::int64_t actions = 0;             ///< that observers received
  std::vector<double> agent_latency{};  ///< in seconds, for each run of a policy
  std::vector<double> agent_throughput{};  ///< requests of a run ÷ its latency
  std::vector<double> observer_latency{};  ///< in seconds, for each action
};

/// The measurements of a run.
struct RunRecord {
  Setting setting{};
  std::vector<EpisodeRecord> episodes{};  ///< the first is for warming up; the last may be cut
  /// From the start of the program, including the start of its processes, to the first action;
  /// unknown if another program started them.
  std::optional<double> start_to_first_action{};
  /// Memory of the agent's process at the end of an episode; the largest of several agents.
  /// @{
  std::int64_t private_memory = 0;
  std::int64_t resident_memory = 0;
  std::int32_t threads = 0;
  /// @}
  std::string incomplete{};  ///< why it ended early; empty if it did not
  bool interrupted = false;  ///< by a signal, perhaps after its last episode
};

}  // namespace rl_benchmark
