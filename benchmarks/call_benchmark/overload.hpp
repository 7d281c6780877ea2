#pragma once

#include <batchrpc/batchrpc.hpp>
#include <nlohmann/json_fwd.hpp>
#include <ostream>

#include "call_benchmark/options.hpp"
#include "call_benchmark/stretch.hpp"

namespace call_benchmark {

/// Measures how many calls are answered in time by a node that gets five times as many calls as it
/// can handle, with NodeOptions::limits.calls and without. The calls come at a fixed rate, whether
/// or not earlier ones were answered. Prints a table and returns entries for the JSON file. Throws
/// Interrupted.
nlohmann::json measure_overload(const Options& options, std::ostream& out, Interrupt& interrupt);

/// The called function: keeps a worker busy for two milliseconds.
void slow_work();

/// For a child: starts the node that is called over TCP; it stays.
batchrpc::Node start_overloaded_server(bool limits);

}  // namespace call_benchmark
