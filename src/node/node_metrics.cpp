#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "dispatch/call_dispatcher.hpp"
#include "node/node_core.hpp"
#include "session/payload_memory.hpp"

// What Node::metrics() says.
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
  peer.reconnects = info.reconnects;
  peer.round_trip = info.round_trip;
  peer.bytes_sent = info.bytes_sent;
  peer.bytes_received = info.bytes_received;
}

}  // namespace

void NodeCore::on_metrics(MetricsSource source) {
  const std::lock_guard lock(mutex_);
  metrics_sources_.push_back(std::move(source));
}

NodeMetrics NodeCore::metrics() const {
  fork_mark_->refuse_forked_copy(options_.name);
  NodeMetrics metrics;
  const TimePoint now = loop_->now();
  metrics.name = name();
  metrics.rank = rank();
  metrics.incarnation = incarnation();
  metrics.uptime = now - made_at_;
  counters_->report(metrics);

  std::map<std::string, PeerMetrics> peers;
  for (PeerMetrics& counted : metrics.peers) {
    if (counted.name == name()) {
      counted.state = "self";
      counted.rank = rank();
    } else if (counted.name != kUnknownName && counted.name != kOtherName) {
      counted.state = "gone";
    }
    peers.emplace(counted.name, std::move(counted));
  }
  for (const PeerInfo& info : peers_->snapshot())
    add_info(peers[info.name], info);
  for (const auto& [peer, load] : peers_->loads()) {
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

  metrics.parked = calls_->parked();
  metrics.workers = own_loop_ ? static_cast<std::size_t>(options_.num_worker_threads) : 0;
  if (const auto queue = calls_->queue_metrics()) metrics.queue = *queue;
  metrics.payload_bytes_in_use = payload_memory_->used_bytes();
  metrics.payload_bytes_kept = payload_memory_->kept_bytes();
  metrics.batchers = batchers_.report();
  std::vector<MetricsSource> sources;
  {
    const std::lock_guard lock(mutex_);
    sources = metrics_sources_;
  }
  for (const MetricsSource& source : sources)
    source(metrics);
  metrics.last_errors = counters_->errors.all(now);
  return metrics;
}

}  // namespace batchrpc
