#pragma once

#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <string>

#include "call_benchmark/options.hpp"
#include "call_benchmark/stretch.hpp"

namespace call_benchmark {

/// Who comes to a node's port beside its peers.
enum class Strangers : unsigned char {
  none,
  slow_loris,  ///< 64 connections that trickle a hello, each again when it was dropped
  flood,       ///< 2000 connections a second that say nothing, or what is no hello
  resets,      ///< 200 a second that are reset while both sides are writing
};

/// How long a peer's calls take when strangers of each kind come to the same port, over TCP, and
/// what that is of what they take otherwise. Prints a table; entries for the JSON file. Throws
/// Interrupted.
nlohmann::json measure_strangers(const Options& options, std::ostream& out, Interrupt& interrupt);

/// Of a child: comes to the TCP address as such strangers, until it is ended.
[[noreturn]] void run_strangers(Strangers strangers, const std::string& address);

}  // namespace call_benchmark
