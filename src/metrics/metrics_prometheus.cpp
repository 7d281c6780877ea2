#include <array>
#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "batchrpc/metrics/node_metrics.hpp"
#include "metrics/prometheus_writer.hpp"

namespace batchrpc {
namespace {

constexpr double kNanosecond = 1e-9;

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

std::string_view name_of_error(std::size_t index) {
  return index == 0 ? "other" : to_string(static_cast<ErrorCode>(index));
}

// Writes one metric at a time, because all samples of a metric must be together.
class Exposition {
 public:
  Exposition(const NodeMetrics& node, std::string& out) : node_(node), out_(out) {}

  void write() {
    write_node();
    write_peers();
    write_calls_made();
    write_calls_answered();
    write_batchers();
    write_rrefs();
  }

 private:
  void counter(std::string_view name, std::string_view help) { out_.family(name, "counter", help); }
  void gauge(std::string_view name, std::string_view help) { out_.family(name, "gauge", help); }
  void histogram(std::string_view name, std::string_view help) {
    out_.family(name, "histogram", help);
  }
  void gauge(std::string_view name, std::string_view help, double value) {
    gauge(name, help);
    out_.sample({}, value);
  }
  void gauge(std::string_view name, std::string_view help, std::uint64_t value) {
    gauge(name, help);
    out_.sample({}, value);
  }
  void counter(std::string_view name, std::string_view help, std::uint64_t value) {
    counter(name, help);
    out_.sample({}, value);
  }

  void write_node() {
    gauge("batchrpc_node_info", "The node: its name, rank and incarnation.");
    out_.sample({{"node", node_.name},
                 {"rank", std::to_string(node_.rank)},
                 {"incarnation", std::to_string(node_.incarnation)}},
                std::uint64_t{1});
    if (node_.certificate_time_left) {
      gauge("batchrpc_certificate_time_left_seconds",
            "How long the node's certificate is still valid; negative once it has expired.",
            static_cast<double>(node_.certificate_time_left->count()));
    }
    gauge("batchrpc_uptime_seconds", "Time since the node was created.", seconds(node_.uptime));
    gauge("batchrpc_pending_calls", "Outgoing calls that wait for an answer.", node_.pending);
    gauge("batchrpc_answering_calls", "Incoming calls that run on workers or complete later.",
          node_.answering);
    gauge("batchrpc_parked_calls", "Incoming calls that wait for their function to be exposed.",
          node_.parked);
    counter("batchrpc_retries_total", "Attempts of outgoing calls after the first.", node_.retries);
    gauge("batchrpc_worker_threads", "Threads that run handlers.", node_.workers);
    gauge("batchrpc_queue_accepted_calls", "Calls accepted under NodeOptions::limits.calls.",
          node_.queue.accepted);
    gauge("batchrpc_queue_running_calls", "Accepted calls that are running.", node_.queue.running);
    gauge("batchrpc_queue_waiting_calls", "Accepted calls that are queued.", node_.queue.waiting);
    counter("batchrpc_queue_refused_calls_total", "Calls refused for lack of room.",
            node_.queue.refused);
    gauge("batchrpc_output_bytes", "Bytes to be sent, or kept until acknowledged.",
          node_.output_bytes);
    gauge("batchrpc_payload_memory_used_bytes", "Bytes of memory in use by large payloads.",
          node_.payload_bytes_in_use);
    gauge("batchrpc_payload_memory_kept_bytes", "Bytes of memory kept for the next large payloads.",
          node_.payload_bytes_kept);
  }

  void write_peers() {
    // States without a peer are written as 0, because an alert cannot fire on a missing sample.
    std::map<std::string_view, std::uint64_t> states{
        {"known", 0}, {"connecting", 0}, {"connected", 0}, {"lost", 0}};
    for (const PeerMetrics& peer : node_.peers) {
      if (!peer.state.empty()) ++states[peer.state];
    }
    gauge("batchrpc_peers", "Peers, by the state of the connection.");
    for (const auto& [state, count] : states)
      out_.sample({{"state", state}}, count);
    gauge("batchrpc_peer_info", "A peer, and the identity that it has proved.");
    for (const PeerMetrics& peer : node_.peers) {
      if (!peer.identity.empty())
        out_.sample({{"peer", peer.name}, {"identity", peer.identity}}, std::uint64_t{1});
    }
    counter("batchrpc_peer_reconnects_total", "Times that a session with a peer was reconnected.");
    for_peers([](const PeerMetrics& peer) { return peer.reconnects; });
    gauge("batchrpc_peer_round_trip_seconds", "Round-trip time of pings, smoothed.");
    for (const PeerMetrics& peer : node_.peers) {
      if (peer.round_trip > Duration::zero()) {
        out_.sample({{"peer", peer.name}}, seconds(peer.round_trip));
      }
    }
    counter("batchrpc_peer_sent_bytes_total", "Bytes sent over connections to a peer.");
    for_peers([](const PeerMetrics& peer) { return peer.bytes_sent; });
    counter("batchrpc_peer_received_bytes_total", "Bytes received over connections to a peer.");
    for_peers([](const PeerMetrics& peer) { return peer.bytes_received; });
    gauge("batchrpc_peer_output_bytes",
          "Bytes to be sent to a peer, or kept until it acknowledges them.");
    for_peers([](const PeerMetrics& peer) { return std::uint64_t{peer.output_bytes}; });
  }
  template <class Value>
  void for_peers(const Value& value) {
    for (const PeerMetrics& peer : node_.peers)
      out_.sample({{"peer", peer.name}}, value(peer));
  }

  template <class Value>
  void for_made(const Value& value) {
    for (const PeerMetrics& peer : node_.peers) {
      for (const PeerCalls& calls : peer.functions)
        out_.sample({{"peer", peer.name}, {"function", calls.function}}, value(calls.made));
    }
  }
  void write_calls_made() {
    counter("batchrpc_calls_total", "Outgoing calls.");
    for_made([](const CallMetrics& made) { return made.calls; });
    counter("batchrpc_call_errors_total", "Outgoing calls that failed, by error code.");
    for (const PeerMetrics& peer : node_.peers) {
      for (const PeerCalls& calls : peer.functions) {
        for (std::size_t i = 0; i < ErrorCounts::kCodes; ++i) {
          if (calls.made.errors.counts[i] == 0) continue;
          out_.sample(
              {{"peer", peer.name}, {"function", calls.function}, {"code", name_of_error(i)}},
              calls.made.errors.counts[i]);
        }
      }
    }
    gauge("batchrpc_calls_in_flight", "Outgoing calls that have not ended.");
    for_made([](const CallMetrics& made) { return made.in_flight; });
    counter("batchrpc_notifications_total", "Notifications sent: messages without an answer.");
    for_made([](const CallMetrics& made) { return made.notifications; });
    counter("batchrpc_call_sent_bytes_total",
            "Bytes of frames and payloads sent for outgoing calls.");
    for_made([](const CallMetrics& made) { return made.bytes_sent; });
    counter("batchrpc_call_received_bytes_total",
            "Bytes of frames and payloads received as their results.");
    for_made([](const CallMetrics& made) { return made.bytes_received; });
    histogram("batchrpc_call_duration_seconds",
              "Time from a call until its result was read, by function.");
    for (const FunctionMetrics& function : node_.functions) {
      if (function.made.calls > 0) latency("function", function.name, function.made.latency);
    }
    histogram("batchrpc_peer_call_duration_seconds",
              "Time from a call until its result was read, by peer.");
    for (const PeerMetrics& peer : node_.peers) {
      if (peer.made.calls > 0) latency("peer", peer.name, peer.made.latency);
    }
  }

  template <class Value>
  void for_answered(const Value& value) {
    for (const FunctionMetrics& function : node_.functions) {
      if (function.answered.calls > 0) {
        out_.sample({{"function", function.name}}, value(function.answered));
      }
    }
  }
  void write_calls_answered() {
    counter("batchrpc_handled_calls_total",
            "Incoming calls, counted once their function is known.");
    for_answered([](const CallMetrics& answered) { return answered.calls; });
    counter("batchrpc_handled_call_errors_total", "Incoming calls that failed, by error code.");
    for (const FunctionMetrics& function : node_.functions) {
      for (std::size_t i = 0; i < ErrorCounts::kCodes; ++i) {
        if (function.answered.errors.counts[i] == 0) continue;
        out_.sample({{"function", function.name}, {"code", name_of_error(i)}},
                    function.answered.errors.counts[i]);
      }
    }
    gauge("batchrpc_handled_calls_in_flight", "Incoming calls not answered yet.");
    for_answered([](const CallMetrics& answered) { return answered.in_flight; });
    counter("batchrpc_handled_call_received_bytes_total",
            "Bytes of frames and payloads of incoming calls.");
    for_answered([](const CallMetrics& answered) { return answered.bytes_received; });
    counter("batchrpc_handled_call_sent_bytes_total",
            "Bytes of frames and payloads sent as their results.");
    for_answered([](const CallMetrics& answered) { return answered.bytes_sent; });
    histogram("batchrpc_handled_call_duration_seconds",
              "Time from an incoming call's arrival until its result was ready.");
    for (const FunctionMetrics& function : node_.functions) {
      if (function.answered.calls > 0)
        latency("function", function.name, function.answered.latency);
    }
  }
  void latency(std::string_view label, std::string_view name, const Histogram& numbers) {
    out_.histogram({{label, name}}, numbers, PrometheusWriter::seconds(), kNanosecond);
  }

  template <class Value>
  void for_batchers(const Value& value) {
    for (const BatcherMetrics& batcher : node_.batchers)
      out_.sample({{"batcher", batcher.name}}, std::uint64_t{value(batcher)});
  }
  void write_batchers() {
    using Batcher = BatcherMetrics;
    counter("batchrpc_batcher_rows_total", "Rows that arrived.");
    for_batchers([](const Batcher& batcher) { return batcher.rows; });
    counter("batchrpc_batcher_ended_rows_total", "Rows by outcome.");
    constexpr std::array<std::pair<std::string_view, std::uint64_t Batcher::*>, 8> kEnds{
        {{"answered", &Batcher::answered},
         {"failed", &Batcher::failed},
         {"rejected", &Batcher::rejected},
         {"invalid", &Batcher::invalid},
         {"expired", &Batcher::expired},
         {"cancelled", &Batcher::cancelled},
         {"left", &Batcher::left},
         {"dropped", &Batcher::dropped}}};
    for (const Batcher& batcher : node_.batchers) {
      for (const auto& [end, count] : kEnds)
        out_.sample({{"batcher", batcher.name}, {"end", end}}, batcher.*count);
    }
    counter("batchrpc_batcher_started_batches_total", "Batches by the reason why they started.");
    for (const Batcher& batcher : node_.batchers) {
      for (const ReasonCount& reason : batcher.reasons)
        out_.sample({{"batcher", batcher.name}, {"reason", reason.reason}}, reason.batches);
    }
    counter("batchrpc_batcher_batches_total", "Batches that have ended.");
    for_batchers([](const Batcher& batcher) { return batcher.batches; });
    gauge("batchrpc_batcher_running_batches", "Batches that are running.");
    for_batchers([](const Batcher& batcher) { return batcher.running; });
    gauge("batchrpc_batcher_queued_rows", "Rows that are queued.");
    for_batchers([](const Batcher& batcher) { return batcher.queued; });
    gauge("batchrpc_batcher_queued_bytes", "Bytes of the rows that are queued.");
    for_batchers([](const Batcher& batcher) { return batcher.queued_bytes; });
    gauge("batchrpc_batcher_held_rows", "Rows whose callers are held back.");
    for_batchers([](const Batcher& batcher) { return batcher.held; });
    histogram("batchrpc_batch_size_rows", "Rows of each batch.");
    for (const Batcher& batcher : node_.batchers) {
      out_.histogram({{"batcher", batcher.name}}, batcher.sizes, PrometheusWriter::sizes(), 1);
    }
    histogram("batchrpc_batch_wait_seconds", "Time from a row's arrival to its batch's start.");
    for (const Batcher& batcher : node_.batchers)
      latency("batcher", batcher.name, batcher.queue_wait);
    histogram("batchrpc_batch_handler_seconds", "Run time of the handler of each batch.");
    for (const Batcher& batcher : node_.batchers)
      latency("batcher", batcher.name, batcher.handler_time);
    histogram("batchrpc_batch_duration_seconds", "Time from a row's arrival to its result.");
    for (const Batcher& batcher : node_.batchers)
      latency("batcher", batcher.name, batcher.latency);
  }

  void write_rrefs() {
    gauge("batchrpc_rref_owned_objects", "Objects of this node that remote references refer to.");
    for (const RRefCount& owned : node_.rrefs.owned)
      out_.sample({{"type", owned.name}}, std::uint64_t{owned.objects});
    gauge("batchrpc_rref_holders", "Peers that hold references to objects of this node.");
    for (const RRefCount& owned : node_.rrefs.owned)
      out_.sample({{"type", owned.name}}, std::uint64_t{owned.holders});
    gauge("batchrpc_rref_waiting_calls", "Calls of their methods that have not started.");
    for (const RRefCount& owned : node_.rrefs.owned)
      out_.sample({{"type", owned.name}}, std::uint64_t{owned.waiting_calls});
    gauge("batchrpc_rref_used_objects", "Objects of peers that this node holds references to.");
    for (const RRefCount& used : node_.rrefs.used)
      out_.sample({{"owner", used.name}}, std::uint64_t{used.objects});
    gauge("batchrpc_rref_handles_in_flight", "References sent that may not have arrived.",
          std::uint64_t{node_.rrefs.in_flight});
  }

  const NodeMetrics& node_;
  PrometheusWriter out_;
};

}  // namespace

std::string to_prometheus(const NodeMetrics& metrics) {
  std::string text;
  Exposition(metrics, text).write();
  return text;
}

}  // namespace batchrpc
