#pragma once

#include <cstdint>
#include <vector>

#include "env_benchmark/calibration.hpp"
#include "env_benchmark/setting.hpp"

namespace env_benchmark {

/// Between the driver and each worker, each way.
struct Link {
  double latency_us = 50;
  std::uint64_t bytes_per_second = 1'250'000'000;  ///< zero: no limit
};

/// A network in virtual time of workers on a machine each, and of a driver, whose messages take
/// their time, one after the other. What timers add to a step is drawn for each, an exponential
/// distribution. Nothing of this is measured. Returns steps of environments in a second of virtual
/// time, of several windows, each of a thousand steps, one after the other.
std::vector<double> simulate(const Setting& setting, const Link& link, const Variant& variant,
                             const Costs& costs);

}  // namespace env_benchmark
