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

/// Of the driver, rank 0, and the workers behind it.
batchrpc::NodeOptions node_options(const Setting& setting, const std::string& meeting_place,
                                   int rank);

/// What a worker's process does until it is told to finish, or the driver is lost.
void run_worker(const Setting& setting, StepTime time, const std::string& meeting_place,
                std::size_t worker);

/// Steps a group a lane, on a thread each, with nothing between two steps. Returns how many steps
/// of environments that is in a second.
double run_free(const Setting& setting, StepTime time, double seconds);

}  // namespace env_benchmark
