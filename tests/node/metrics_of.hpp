#pragma once

#include <stdexcept>
#include <string>

#include "batchrpc/metrics/node_metrics.hpp"

/// Parts of a node's metrics.
namespace batchrpc::test {

inline const CallMetrics* made_of(const NodeMetrics& metrics, const std::string& function) {
  for (const FunctionMetrics& entry : metrics.functions) {
    if (entry.name == function) return &entry.made;
  }
  return nullptr;
}

inline const CallMetrics* answered_of(const NodeMetrics& metrics, const std::string& function) {
  for (const FunctionMetrics& entry : metrics.functions) {
    if (entry.name == function) return &entry.answered;
  }
  return nullptr;
}

inline PeerMetrics peer_of(const NodeMetrics& metrics, const std::string& name) {
  for (const PeerMetrics& peer : metrics.peers) {
    if (peer.name == name) return peer;
  }
  throw std::out_of_range("no metrics of peer " + name);
}

inline bool adds_up(const CallMetrics& calls) {
  return calls.calls == calls.ok + calls.errors.total() + calls.in_flight &&
         calls.ok == calls.latency.count();
}

}  // namespace batchrpc::test
