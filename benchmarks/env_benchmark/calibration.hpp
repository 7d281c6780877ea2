#pragma once

#include <cstddef>
#include <vector>

#include "env_benchmark/record.hpp"

namespace env_benchmark {

/// The costs that a simulation needs, measured for the variant that it simulates.
struct Costs {
  double message_us = 0;  ///< the driver's CPU time for a step of a group, request and reply
  double byte_ns = 0;     ///< the same for each byte of observations
  double step_us = 0;     ///< how much longer a step takes than requested, because of timers
  double fit_error =
      0;  ///< the largest relative error of message_us and byte_ns in the measured points
};

/// The driver's cost of a message with that many bytes of observations.
struct MessageCost {
  double bytes = 0;
  double us = 0;
};

/// The line through these points, by relative errors, so that small messages count as much as large
/// ones. If all messages have one size, the whole cost is message_us. No result is negative.
Costs fit(const std::vector<MessageCost>& messages);

/// Adds the settings that the simulation of the first one needs. Costs are fitted to the same
/// setting with observations of other sizes. The simulation is checked on settings that are not
/// part of the fit: steps ten times as long, and two workers of 48 lanes, like the simulated
/// machines.
void add_calibration(std::vector<Setting>& settings);

/// Whether this is the first setting, except for the size of its observations.
bool calibrates(const Setting& setting, const Setting& first);

/// The costs of the variant, from all records that calibrate the first setting.
Costs costs_of(const std::vector<Record>& records, std::size_t variant);

}  // namespace env_benchmark
