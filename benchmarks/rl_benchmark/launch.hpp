#pragma once

#include <chrono>

#include "rl_benchmark/record.hpp"
#include "rl_benchmark/setting.hpp"

namespace rl_benchmark {

/// Starts a run's agents and observers as copies of this process, which has loaded LibTorch
/// already, and coordinates the run. `started` is when the run began. Throws batchrpc::JoinFailed,
/// batchrpc::InvalidArgument and std::system_error if the run cannot begin.
RunRecord launch(const Setting& setting, std::chrono::steady_clock::time_point started,
                 bool progress);

/// Coordinates a run whose other processes were started elsewhere. `more`: another run follows
/// unless this one ends early.
RunRecord coordinate(const Setting& setting, bool progress, bool more);

}  // namespace rl_benchmark
