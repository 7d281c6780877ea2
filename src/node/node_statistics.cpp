#include "node/node_statistics.hpp"

#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace batchrpc {
namespace {

std::string_view name_of(PeerState state) noexcept {
  switch (state) {
    case PeerState::known:
      return "known";
    case PeerState::connecting:
      return "connecting";
    case PeerState::connected:
      return "connected";
    case PeerState::lost:
      return "lost";
  }
  return "unknown";
}

void add_info(PeerMetrics& peer, const PeerInfo& info) {
  peer.name = info.name;
  peer.rank = info.rank;
  peer.state = name_of(info.state);
  peer.identity = info.identity;
  peer.reconnects = info.reconnects;
  peer.round_trip = info.round_trip;
  peer.bytes_sent = info.bytes_sent;
  peer.bytes_received = info.bytes_received;
}

// Adds the states and loads of the peers to the calls that were counted.
void add_peers(NodeMetrics& metrics, const PeerTable& table) {
  std::map<std::string, PeerMetrics> peers;
  for (PeerMetrics& counted : metrics.peers) {
    if (counted.name == metrics.name) {
      counted.state = "self";
      counted.rank = metrics.rank;
    } else if (counted.name != kUnknownName && counted.name != kOtherName) {
      counted.state = "gone";
    }
    peers.emplace(counted.name, std::move(counted));
  }
  for (const PeerInfo& info : table.snapshot())
    add_info(peers[info.name], info);
  for (const auto& [peer, load] : table.loads()) {
    metrics.pending += load.pending;
    metrics.answering += load.answering;
    metrics.output_bytes += load.output_bytes;
    const auto at = peers.find(peer);
    if (at == peers.end()) continue;
    at->second.pending = load.pending;
    at->second.answering = load.answering;
    at->second.output_bytes = load.output_bytes;
  }
  metrics.peers.clear();
  for (auto& [peer, of_peer] : peers)
    metrics.peers.push_back(std::move(of_peer));
}

}  // namespace

NodeStatistics::NodeStatistics(const Loop& loop)
    : loop_(loop), made_at_(loop.now()), counters_(loop) {}

void NodeStatistics::add_source(LocalNode::MetricsSource source) {
  const std::lock_guard lock(mutex_);
  sources_.push_back(std::move(source));
}

void NodeStatistics::report(NodeMetrics& metrics, const PeerTable& peers) const {
  const TimePoint now = loop_.now();
  metrics.uptime = now - made_at_;
  counters_.report(metrics);
  add_peers(metrics, peers);
  metrics.batchers = batchers_.report();
  std::vector<LocalNode::MetricsSource> sources;
  {
    const std::lock_guard lock(mutex_);
    sources = sources_;
  }
  for (const LocalNode::MetricsSource& source : sources)
    source(metrics);
  metrics.last_errors = counters_.errors.all(now);
}

}  // namespace batchrpc
