#pragma once

#include <cstddef>

#include "env_benchmark/setting.hpp"

namespace env_benchmark {

/// What a simulation takes from measurements.
struct Costs {
  double message_us = 0;  ///< CPU time of the driver for a step of a group, there and back
  double step_us = 0;     ///< by how much a step takes longer than it should: what timers add
};

/// A network in virtual time (latency 50 us, 10 Gbit/s each way) of machines with a worker each,
/// and of a driver, whose messages take their time. What timers add to a step is drawn for each, an
/// exponential distribution. Nothing of this is measured.
struct SimulatedWorkers {
  std::size_t workers = 2;
  std::size_t envs_per_worker = 48;
  std::size_t lanes = 48;
  double step_ms = 1;
  double latency_us = 50;
};

/// Steps of environments in a second, of virtual time.
double simulate(const SimulatedWorkers& workers, const Variant& variant, const Costs& costs);

}  // namespace env_benchmark
