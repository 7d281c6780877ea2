#pragma once

#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <string>

#include "call_benchmark/options.hpp"
#include "call_benchmark/rounds.hpp"

namespace call_benchmark {

/// Explains the columns and describes the machine; printed before the first group.
void print_head(std::ostream& out, const Options& options);

/// Prints one line per row, with its ratio to the group's first row, the blocking floor.
void print_group(std::ostream& out, const Group& group);

/// Converts a row to an object:
/// - `system` ("batchrpc", "floor", "floor_busy", "floor_frame_sized"), `transport`, `case`,
///   `in_flight` (per connection), `connections`, `pinned`;
/// - `calls_per_s` (median of the rounds), `rtt_us` {p50, p90, p99} (of all calls);
/// - `handlers` and `style` (null for floors), `profiler` (one in this many calls was recorded;
///   absent: none);
/// - `cpu_us` per call {client, server: 0 if in the client's process};
/// - `to_floor` {calls_per_s, rtt, cpu} (null for the blocking floor), `rounds` and more.
nlohmann::json to_json(const Row& row, const Row& floor, const Options& options);

/// The machine and the versions, for each entry of the file.
nlohmann::json machine();

void write_json(const std::string& path, const nlohmann::json& entries);

}  // namespace call_benchmark
