#pragma once

#include <nlohmann/json_fwd.hpp>
#include <ostream>

#include "call_benchmark/options.hpp"
#include "call_benchmark/stretch.hpp"

namespace call_benchmark {

/// Measures the CPU time of two connected, idle nodes that have called each other, as a fraction of
/// elapsed time, for each process. Prints a table and returns entries for the JSON file. Throws
/// Interrupted.
nlohmann::json measure_idle(const Options& options, std::ostream& out, Interrupt& interrupt);

}  // namespace call_benchmark
