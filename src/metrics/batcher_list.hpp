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

/// The batchers that are exposed on a node. Those of one name are reported together, with what
/// those have counted that are gone. Thread-safe.
class BatcherList {
 public:
  /// Null: the batcher is about to be gone.
  using Figures = std::function<std::optional<BatcherMetrics>()>;

  /// `figures` is called without a lock, until the number takes it back.
  std::uint64_t add(std::string name, Figures figures);
  /// `last`: what the batcher has counted.
  void remove(std::uint64_t number, BatcherMetrics last);
  /// In order of their names.
  [[nodiscard]] std::vector<BatcherMetrics> report() const;

 private:
  struct Entry {
    std::string name;
    Figures figures;
  };

  mutable std::mutex mutex_;
  std::map<std::uint64_t, Entry> entries_;
  std::map<std::string, BatcherMetrics, std::less<>> past_;
  std::uint64_t next_ = 1;
};

}  // namespace batchrpc
