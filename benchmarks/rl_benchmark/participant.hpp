#pragma once

#include "rl_benchmark/setting.hpp"

namespace rl_benchmark {

/// Is the agent or observer of that rank until the coordinator ends the run. Gives whether another
/// one follows. Throws batchrpc::JoinFailed, and std::runtime_error when the coordinator is lost.
bool run_participant(const Setting& setting, int rank);

}  // namespace rl_benchmark
