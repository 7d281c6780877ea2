#pragma once

#include <cstdint>
#include <vector>

#include "env_benchmark/calibration.hpp"
#include "env_benchmark/setting.hpp"

namespace env_benchmark {

/// The link between the driver and each worker, in each direction.
struct Link {
  double latency_us = 50;
  std::uint64_t bytes_per_second = 1'250'000'000;  ///< zero: no limit
};

/// Simulates, in virtual time, a network of workers on one machine each and of a driver that
/// handles its messages one after the other. The time that timers add to each step is drawn from an
/// exponential distribution. Nothing here is measured. Returns environment steps per second of
/// virtual time for several consecutive windows of a thousand steps each.
std::vector<double> simulate(const Setting& setting, const Link& link, const Variant& variant,
                             const Costs& costs);

}  // namespace env_benchmark
