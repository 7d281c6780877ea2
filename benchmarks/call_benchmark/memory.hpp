#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <string>

#include "call_benchmark/options.hpp"
#include "call_benchmark/shape.hpp"
#include "call_benchmark/stretch.hpp"

/// The resident memory (RSS) per connection and per pending call, for each side, from the
/// difference that many of them make. Freed memory is returned to the system first; the kernel's
/// socket buffers are not included. Inproc nodes share a process, so both sides are counted
/// together.
namespace call_benchmark {

/// Prints a table and returns entries for the JSON file. Throws Interrupted.
nlohmann::json measure_memory(const Options& options, std::ostream& out, Interrupt& interrupt);

using Say = std::function<void(const std::string& line)>;

// The children's work. Those with a result write it, in bytes, as a line.

/// Runs a root and `count` more nodes in one loop. Writes the root's address, then stays.
void run_many_nodes(Transport transport, int count, const Say& say);
/// Runs a node that joins those and calls each of them. Writes by how much its memory grew.
void run_calling_node(Transport transport, const std::string& address, int count, const Say& say);
/// Runs a root. Writes its address and, when `count` nodes have joined and called it, by how much
/// its memory grew.
void run_called_node(Transport transport, int count, const Say& say);
/// Runs the `count` nodes that do so; they stay.
void run_joining_nodes(Transport transport, const std::string& address, int count, const Say& say);
/// Runs a node that makes `count` calls that are held. Writes by how much its memory and the other
/// node's memory grew.
void run_pending_calls(Transport transport, const std::string& address, int count, const Say& say);

}  // namespace call_benchmark
