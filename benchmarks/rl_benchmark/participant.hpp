#pragma once

#include "rl_benchmark/setting.hpp"

namespace rl_benchmark {

/// Runs the agent or observer of that rank until the coordinator ends the run. Returns whether
/// another run follows. Throws batchrpc::JoinFailed, and std::runtime_error if the coordinator is
/// lost.
bool run_participant(const Setting& setting, int rank);

}  // namespace rl_benchmark
