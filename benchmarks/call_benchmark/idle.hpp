#pragma once

#include <nlohmann/json_fwd.hpp>
#include <ostream>

#include "call_benchmark/options.hpp"
#include "call_benchmark/stretch.hpp"

namespace call_benchmark {

/// The CPU time of two nodes that are connected, have called each other, and do nothing: as a share
/// of the time that passes, each process by itself. Prints a table; entries for the JSON file.
/// Throws Interrupted.
nlohmann::json measure_idle(const Options& options, std::ostream& out, Interrupt& interrupt);

}  // namespace call_benchmark
