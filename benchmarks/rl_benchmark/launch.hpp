#pragma once

#include <chrono>

#include "rl_benchmark/record.hpp"
#include "rl_benchmark/setting.hpp"

namespace rl_benchmark {

/// Starts a run's agents and observers as copies of this process, which has loaded LibTorch
/// already, and is their coordinator. `started` is when the run began. Throws what keeps the run
/// from beginning: batchrpc::JoinFailed, batchrpc::InvalidArgument, std::system_error.
RunRecord launch(const Setting& setting, std::chrono::steady_clock::time_point started,
                 bool progress);

/// Is the coordinator of a run whose other processes others have started; `more`: another run
/// follows unless this one ends early.
RunRecord coordinate(const Setting& setting, bool progress, bool more);

}  // namespace rl_benchmark
