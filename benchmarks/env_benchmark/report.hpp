#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "env_benchmark/options.hpp"
#include "env_benchmark/record.hpp"
#include "env_benchmark/simulation.hpp"

namespace env_benchmark {

/// A row of the simulation, in environment steps per second.
struct Simulated {
  Setting setting{};
  Link link{};
  std::size_t variant = 0;         ///< index in the options
  std::vector<double> windows{};   ///< per window of virtual time
  std::vector<double> measured{};  ///< rounds, if it was also measured

  [[nodiscard]] double efficiency() const;  ///< of the simulation
  [[nodiscard]] double off() const;         ///< by how much that exceeds the measured one
};

/// The largest error of the checks with the row's variant whose steps are nearest to its own.
double most_off(const std::vector<Simulated>& checks, const Simulated& row);

/// The input of a simulation, one per variant of the options, and its results.
struct Simulation {
  std::vector<Costs> costs{};
  std::vector<Simulated> checks{};    ///< on settings that were not used for the costs
  std::vector<Simulated> machines{};  ///< machines that do not exist
};

/// Prints the table's heading of one setting.
void print_heading(const Setting& setting);
void print_record(const Options& options, const Record& record);
/// Prints the results in the table of Ray's published figures.
void print_beside_published(const Options& options, const std::vector<Record>& records);
void print_simulation(const Options& options, const Simulation& simulation);

nlohmann::json report_json(const Options& options, const std::vector<Record>& records,
                           const Simulation& simulation);

}  // namespace env_benchmark
