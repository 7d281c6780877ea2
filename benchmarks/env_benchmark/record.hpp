#pragma once

#include <cstddef>
#include <vector>

#include "env_benchmark/setting.hpp"

namespace env_benchmark {

/// The rounds of a setting.
struct Record {
  Setting setting{};
  std::vector<double> free{};                     ///< steps per second; one per round
  std::vector<std::vector<Measured>> variants{};  ///< in the order of the options; one per round
};

/// The medians over the rounds.
/// @{
double median_free(const Record& record);
Measured median_of(const std::vector<Measured>& rounds);
/// @}

/// A variant's ratio to Setting::ideal(), and to free lanes.
/// @{
double efficiency(const Record& record, std::size_t variant);
double of_free_lanes(const Record& record, std::size_t variant);
/// @}

std::vector<double> rates_of(const std::vector<Measured>& rounds);

/// The spread of several measurements of the same value.
struct Spread {
  double median = 0;
  double half_range = 0;
};
Spread spread_of(const std::vector<double>& values);

}  // namespace env_benchmark
