#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "batch_benchmark/report.hpp"

namespace batch_benchmark {

/// Each prints its table and gives what of it stands in the JSON.
/// @{

/// To gather and scatter a row with a handler that does nothing, without a node.
nlohmann::json measure_inprocess(const Run& run);
/// Processes that each ask for an action and wait for it: in batches, one by one, and in batches
/// that are made by hand.
nlohmann::json measure_remote(const Run& run);
/// What becomes of a batch with one row that makes its handler throw.
nlohmann::json measure_isolate(const Run& run);
/// What a batcher keeps of the rows that it has answered.
nlohmann::json measure_memory(const Run& run);
/// A batcher that chooses its wait by itself, beside those with a fixed one.
nlohmann::json measure_adaptive(const Run& run);
/// Throughput and latency against max_size, max_wait and the number of observers.
nlohmann::json measure_sweeps(const Run& run);
/// The job of benchmarks/peers, with its keys.
nlohmann::json measure_peer(const Run& run);
/// @}

/// Rows a batch, in process.
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
