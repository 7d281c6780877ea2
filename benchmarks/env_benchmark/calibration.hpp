#pragma once

#include <cstddef>
#include <vector>

#include "env_benchmark/record.hpp"

namespace env_benchmark {

/// What a simulation takes from measurements, of the variant that it simulates.
struct Costs {
  double message_us = 0;  ///< CPU time of the driver for a step of a group, there and back
  double byte_ns = 0;     ///< the same, for each byte of observations
  double step_us = 0;     ///< by how much a step takes longer than it should: what timers add
  double fit_error = 0;   ///< the largest relative error of message_us and byte_ns where measured
};

/// What a message of so many bytes of observations has cost the driver.
struct MessageCost {
  double bytes = 0;
  double us = 0;
};

/// The line through these, by relative errors, so that small messages count as much as large ones;
/// with messages of one size, all of it is message_us. Nothing of it is negative.
Costs fit(const std::vector<MessageCost>& messages);

/// Adds to the first of these settings what its simulation needs: the same with observations of
/// other sizes, to which costs are fitted; and settings to check it on, which have no part in that:
/// steps ten times as long, and two workers of 48 lanes, as the machines that are simulated have.
void add_calibration(std::vector<Setting>& settings);

/// Whether this is the first setting, but for the size of its observations.
bool calibrates(const Setting& setting, const Setting& first);

/// Costs of the variant, from all records that calibrate the first one.
Costs costs_of(const std::vector<Record>& records, std::size_t variant);

}  // namespace env_benchmark
