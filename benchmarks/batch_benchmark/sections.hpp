#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "batch_benchmark/report.hpp"

namespace batch_benchmark {

/// Each function prints its table and returns its part of the JSON.
/// @{

/// The cost of gathering and scattering a row, with a handler that does nothing and without a node.
nlohmann::json measure_inprocess(const Run& run);
/// Processes that request one action at a time: in batches, one by one, and in batches made by
/// hand.
nlohmann::json measure_remote(const Run& run);
/// The result of a batch in which one row makes the handler throw.
nlohmann::json measure_isolate(const Run& run);
/// The memory that a batcher keeps for rows that it has answered.
nlohmann::json measure_memory(const Run& run);
/// A batcher that adapts its wait, compared with fixed waits.
nlohmann::json measure_adaptive(const Run& run);
/// Throughput and latency over max_size, max_wait and the number of observers.
nlohmann::json measure_sweeps(const Run& run);
/// The task of benchmarks/peers, with its keys.
nlohmann::json measure_peer(const Run& run);
/// @}

/// Rows per batch, in process.
inline constexpr std::size_t kBatch = 64;

struct Section {
  std::string name;
  std::function<nlohmann::json(const Run&)> measure;
  bool by_default = true;
};

const std::vector<Section>& sections();
/// Throws UsageError.
const Section& section_of(const std::string& name);

}  // namespace batch_benchmark
