#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "batchrpc/metrics/node_metrics.hpp"

namespace batchrpc {

/// The batchers that are exposed on a node. Batchers of one name are reported together, including
/// the counts of those already destroyed. Thread-safe.
class BatcherList {
 public:
  /// Returns nothing if the batcher is about to be destroyed.
  using Statistics = std::function<std::optional<BatcherMetrics>()>;

  /// Adds a batcher and returns its number. `statistics` is called without a lock, until remove()
  /// is called with that number.
  std::uint64_t add(std::string name, Statistics statistics);
  /// Removes a batcher. `last` holds its final counts.
  void remove(std::uint64_t number, BatcherMetrics last);
  /// Returns the metrics sorted by name.
  [[nodiscard]] std::vector<BatcherMetrics> report() const;

 private:
  struct Entry {
    std::string name;
    Statistics statistics;
  };

  mutable std::mutex mutex_;
  std::map<std::uint64_t, Entry> entries_;
  std::map<std::string, BatcherMetrics, std::less<>> past_;
  std::uint64_t next_ = 1;
};

}  // namespace batchrpc
