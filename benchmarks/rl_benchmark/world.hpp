#pragma once

#include <batchrpc/call/node_options.hpp>
#include <string>
#include <vector>

#include "rl_benchmark/setting.hpp"

namespace rl_benchmark {

/// The roles in a world: rank 0 is the coordinator, the next ranks are agents, the rest observers,
/// which are distributed among the agents in turn. The names are the original's.

inline constexpr const char* kCoordinator = "coordinator";

/// Functions that the coordinator calls on all others: void() ends the episode early; void(bool)
/// ends the process, and its argument says whether another run follows.
inline constexpr const char* kStop = "stop";
inline constexpr const char* kEnd = "end";

[[nodiscard]] bool is_agent(const Setting& setting, int rank);

/// The name of the node with that rank.
[[nodiscard]] std::string name_of(const Setting& setting, int rank);

/// The names of all agents, in the order of their ranks.
[[nodiscard]] std::vector<std::string> agent_names(const Setting& setting);

/// The names of all observers, in the order of their ranks.
[[nodiscard]] std::vector<std::string> observer_names(const Setting& setting);

/// The index of an observer's agent; both count from 0.
[[nodiscard]] int agent_of(const Setting& setting, int observer);

/// The names of the observers of an agent, counted from 0.
[[nodiscard]] std::vector<std::string> observers_of(const Setting& setting, int agent);

/// The options of the node with that rank.
[[nodiscard]] batchrpc::NodeOptions node_options(const Setting& setting, int rank);

}  // namespace rl_benchmark
