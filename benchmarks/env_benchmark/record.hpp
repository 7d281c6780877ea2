#pragma once

#include <cstddef>
#include <vector>

#include "env_benchmark/setting.hpp"

namespace env_benchmark {

/// A setting's rounds.
struct Record {
  Setting setting{};
  std::vector<double> free{};                     ///< a round each: steps in a second
  std::vector<std::vector<Measured>> variants{};  ///< in the order of the options; a round each
};

/// Medians over the rounds.
/// @{
double median_free(const Record& record);
Measured median_of(const std::vector<Measured>& rounds);
/// @}

/// How much of Setting::ideal() a variant has reached, and of what free lanes did.
/// @{
double efficiency(const Record& record, std::size_t variant);
double of_free_lanes(const Record& record, std::size_t variant);
/// @}

std::vector<double> rates_of(const std::vector<Measured>& rounds);

/// Of several measurements of the same.
struct Spread {
  double median = 0;
  double half_range = 0;
};
Spread spread_of(const std::vector<double>& values);

}  // namespace env_benchmark
