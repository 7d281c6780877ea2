#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "env_benchmark/options.hpp"
#include "env_benchmark/simulation.hpp"

namespace env_benchmark {

/// A setting's rounds.
struct Record {
  Setting setting{};
  std::vector<double> free{};                     ///< a round each: steps in a second
  std::vector<std::vector<Measured>> variants{};  ///< in the order of the options; a round each
};

struct Simulated {
  SimulatedWorkers workers{};
  Variant variant{};
  double steps_per_second = 0;
  double ideal = 0;                  ///< the same, were a step all that takes time
  std::optional<double> measured{};  ///< steps in a second, where it could be run, too
};

/// Prints one setting's part of the table.
void print_heading(const Setting& setting);
void print_record(const Options& options, const Record& record);
void print_published();
void print_simulated(const std::vector<Simulated>& simulated, const Costs& costs);

nlohmann::json report_json(const Options& options, const std::vector<Record>& records,
                           const std::vector<Simulated>& simulated, const Costs& costs);

/// Medians over the rounds.
/// @{
double median_free(const Record& record);
Measured median_of(const std::vector<Measured>& rounds);
/// @}

}  // namespace env_benchmark
