#pragma once

#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <string>

#include "call_benchmark/options.hpp"
#include "call_benchmark/stretch.hpp"

namespace call_benchmark {

/// Other programs that connect to a node's port.
enum class Strangers : unsigned char {
  none,
  slow_loris,  ///< 64 connections that trickle a hello, and reconnect when dropped
  flood,       ///< 2000 connections per second that send nothing, or no valid hello
  resets,      ///< 200 connections per second that are reset while both sides write
};

/// Measures a peer's calls over TCP while strangers of each kind connect to the same port, and
/// their ratio to calls without strangers. Prints a table and returns entries for the JSON file.
/// Throws Interrupted.
nlohmann::json measure_strangers(const Options& options, std::ostream& out, Interrupt& interrupt);

/// For a child: connects to the TCP address as such strangers, until it is ended.
[[noreturn]] void run_strangers(Strangers strangers, const std::string& address);

}  // namespace call_benchmark
