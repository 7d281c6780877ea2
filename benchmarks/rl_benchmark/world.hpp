#pragma once

#include <batchrpc/call/node_options.hpp>
#include <string>
#include <vector>

#include "rl_benchmark/setting.hpp"

namespace rl_benchmark {

/// Who is who in a world: rank 0 is the coordinator, the next ones are agents, the rest observers,
/// which are dealt out to the agents in turn. Names are the original's.

inline constexpr const char* kCoordinator = "coordinator";

/// Functions that the coordinator calls on all others: void(), to end the episode early; and
/// void(bool), to end, where the argument says whether another run follows.
inline constexpr const char* kStop = "stop";
inline constexpr const char* kEnd = "end";

[[nodiscard]] bool is_agent(const Setting& setting, int rank);

/// The name of the node of that rank.
[[nodiscard]] std::string name_of(const Setting& setting, int rank);

/// Of all agents, in the order of their ranks.
[[nodiscard]] std::vector<std::string> agent_names(const Setting& setting);

/// Of all observers, in the order of their ranks.
[[nodiscard]] std::vector<std::string> observer_names(const Setting& setting);

/// The agent, counted from 0, of the observer counted from 0.
[[nodiscard]] int agent_of(const Setting& setting, int observer);

/// The names of the observers of that agent, counted from 0.
[[nodiscard]] std::vector<std::string> observers_of(const Setting& setting, int agent);

/// What the node of that rank starts with.
[[nodiscard]] batchrpc::NodeOptions node_options(const Setting& setting, int rank);

}  // namespace rl_benchmark
