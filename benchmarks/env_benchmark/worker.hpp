#pragma once

#include <batchrpc/call/node_options.hpp>
#include <cstddef>
#include <string>

#include "env_benchmark/setting.hpp"
#include "env_benchmark/timed_group.hpp"

namespace env_benchmark {

inline constexpr const char* kDriver = "driver";
inline constexpr const char* kFree = "free";  ///< double(double seconds)

inline std::string worker_name(std::size_t worker) { return "worker" + std::to_string(worker); }

/// The options of the driver, rank 0, and of the workers after it.
batchrpc::NodeOptions node_options(const Setting& setting, const std::string& meeting_place,
                                   int rank);

/// Runs a worker's process until it is told to finish, or until the driver is lost.
void run_worker(const Setting& setting, StepTime time, const std::string& meeting_place,
                std::size_t worker);

/// Steps one group per lane, each on its own thread, with nothing between two steps. Returns
/// environment steps per second.
double run_free(const Setting& setting, StepTime time, double seconds);

}  // namespace env_benchmark
