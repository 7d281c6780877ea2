#pragma once

#include <nlohmann/json_fwd.hpp>
#include <ostream>

#include "tensor_benchmark/options.hpp"
#include "tensor_benchmark/rounds.hpp"

namespace tensor_benchmark {

/// Explains the columns and describes the machine; printed before the first group.
void print_head(std::ostream& out, const Options& options);

/// Prints one line per row, with its ratio to the group's floor, if there is one.
void print_group(std::ostream& out, const Group& group);

/// Converts the rows of a group to objects:
/// - `system` ("batchrpc", "floor"), `transport`, `mode`, `bytes`, `window`, `contiguous`,
///   `receive` ("fresh", "into"; "reused" for floors), `pinned`, `handlers` (null for floors);
/// - `gb_per_s` (median of the rounds), `rounds` (GB/s of each), `p50_us` and `p99_us` (of all
///   calls), `calls`;
/// - per call `cpu_s_per_gb` and `fresh_pages` {client, server: 0 if in the client's process},
///   `fresh_pages_per_call` (of both), `copies` {client, server} (null if they cannot be counted);
/// - `to_floor` {gb_per_s, p50, cpu} (null for floors and without one), `seconds` (of a sample),
///   `machine`.
nlohmann::json to_json(const Group& group, const Options& options);

}  // namespace tensor_benchmark
