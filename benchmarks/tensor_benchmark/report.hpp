#pragma once

#include <nlohmann/json_fwd.hpp>
#include <ostream>

#include "tensor_benchmark/options.hpp"
#include "tensor_benchmark/rounds.hpp"

namespace tensor_benchmark {

/// What the columns mean, and on which machine; before the first group.
void print_head(std::ostream& out, const Options& options);

/// A line a row, with what it is of the group's floor, if it has one.
void print_group(std::ostream& out, const Group& group);

/// The rows of a group as objects: `system` ("batchrpc", "floor"), `transport`, `mode`, `bytes`,
/// `window`, `contiguous`, `receive` ("fresh", "into"; "reused" of floors), `pinned`, `handlers`
/// (null for floors), `gb_per_s` (median of the rounds), `rounds` (GB/s of each), `p50_us` and
/// `p99_us` (of all calls), `calls`, `cpu_s_per_gb` and `fresh_pages` (a call) {client, server: 0
/// if in the client's process}, `fresh_pages_per_call` (of both), `copies` {client, server} (a
/// call; null where they cannot be counted), `to_floor` {gb_per_s, p50, cpu} (null for floors and
/// without one), `seconds` (of a sample), `machine`.
nlohmann::json to_json(const Group& group, const Options& options);

}  // namespace tensor_benchmark
