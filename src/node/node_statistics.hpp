#pragma once

#include <mutex>
#include <vector>

#include "call/local_node.hpp"
#include "metrics/batcher_list.hpp"
#include "metrics/node_counters.hpp"
#include "peers/peer_table.hpp"

namespace batchrpc {

/// Counts what a node does, for Node::metrics(). Layers above add statistics of their own.
/// Thread-safe.
class NodeStatistics {
 public:
  /// The loop must outlive this.
  explicit NodeStatistics(const Loop& loop);

  [[nodiscard]] NodeCounters& counters() noexcept { return counters_; }
  [[nodiscard]] BatcherList& batchers() noexcept { return batchers_; }
  /// `source` adds to each report. It is called without a lock.
  void add_source(LocalNode::MetricsSource source);

  /// Adds to `metrics`, which names the node, its calls, its peers, its batchers, its last errors
  /// and what the sources add.
  void report(NodeMetrics& metrics, const PeerTable& peers) const;

 private:
  const Loop& loop_;
  const TimePoint made_at_;
  NodeCounters counters_;
  BatcherList batchers_;

  mutable std::mutex mutex_;  // guards the member below
  std::vector<LocalNode::MetricsSource> sources_;
};

}  // namespace batchrpc
