#pragma once

#include <batchrpc/batchrpc.hpp>
#include <nlohmann/json_fwd.hpp>
#include <ostream>

#include "call_benchmark/options.hpp"
#include "call_benchmark/stretch.hpp"

namespace call_benchmark {

/// How many calls of a node that can do so many, and is asked to do five times as many, are
/// answered in time: with NodeOptions::call_limits and without. The calls come at a fixed rate,
/// whether others were answered or not. Prints a table; entries for the JSON file. Throws
/// Interrupted.
nlohmann::json measure_overload(const Options& options, std::ostream& out, Interrupt& interrupt);

/// What it is asked to do: keeps one of its workers busy for two milliseconds.
void slow_work();

/// Of a child: the node that is asked, over TCP; stays.
batchrpc::Node start_overloaded_server(bool limits);

}  // namespace call_benchmark
