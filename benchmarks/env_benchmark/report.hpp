#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "env_benchmark/options.hpp"
#include "env_benchmark/record.hpp"
#include "env_benchmark/simulation.hpp"

namespace env_benchmark {

/// A row of the simulation; steps of environments in a second.
struct Simulated {
  Setting setting{};
  Link link{};
  std::size_t variant = 0;         ///< of the options
  std::vector<double> windows{};   ///< of virtual time
  std::vector<double> measured{};  ///< rounds, where it was run, too

  [[nodiscard]] double efficiency() const;  ///< simulated
  [[nodiscard]] double off() const;         ///< how much more that is than what was measured
};

/// The most that the checks of the row's variant, and of steps nearest to its own, are off by.
double most_off(const std::vector<Simulated>& checks, const Simulated& row);

/// What a simulation has taken, a variant of the options each, and what it has given.
struct Simulation {
  std::vector<Costs> costs{};
  std::vector<Simulated> checks{};    ///< on settings that costs are not from
  std::vector<Simulated> machines{};  ///< that are not there
};

/// Prints one setting's part of the table.
void print_heading(const Setting& setting);
void print_record(const Options& options, const Record& record);
/// In the table of Ray's published figures.
void print_beside_published(const Options& options, const std::vector<Record>& records);
void print_simulation(const Options& options, const Simulation& simulation);

nlohmann::json report_json(const Options& options, const std::vector<Record>& records,
                           const Simulation& simulation);

}  // namespace env_benchmark
