#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <string>

#include "call_benchmark/options.hpp"
#include "call_benchmark/shape.hpp"
#include "call_benchmark/stretch.hpp"

/// Resident memory (RSS) of a connection and of a pending call, each side by itself, as the
/// difference that many make. What was freed is given back to the system before; the kernel's
/// socket buffers are not in it. Inproc nodes share a process: there both sides are counted
/// together.
namespace call_benchmark {

/// Prints a table; entries for the JSON file. Throws Interrupted.
nlohmann::json measure_memory(const Options& options, std::ostream& out, Interrupt& interrupt);

using Say = std::function<void(const std::string& line)>;

// What the children do. Those with a result say it, in bytes, as a line.

/// A root and `count` nodes more in one loop. Says where the root is; then stays.
void run_many_nodes(Transport transport, int count, const Say& say);
/// A node that joins those and calls each of them. Says how much it has grown.
void run_calling_node(Transport transport, const std::string& address, int count, const Say& say);
/// A root. Says where it is, and when `count` nodes have joined and called it, how much it has
/// grown.
void run_called_node(Transport transport, int count, const Say& say);
/// The `count` nodes that do so; they stay.
void run_joining_nodes(Transport transport, const std::string& address, int count, const Say& say);
/// A node that makes `count` calls that are held. Says how much it has grown, and how much the
/// other.
void run_pending_calls(Transport transport, const std::string& address, int count, const Say& say);

}  // namespace call_benchmark
