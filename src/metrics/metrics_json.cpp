#include "base/json_writer.hpp"
#include "batchrpc/metrics/node_metrics.hpp"

namespace batchrpc {

std::string_view to_string(ErrorRecord::Kind kind) noexcept {
  switch (kind) {
    case ErrorRecord::Kind::call:
      return "call";
    case ErrorRecord::Kind::answer:
      return "answer";
    case ErrorRecord::Kind::connection:
      return "connection";
  }
  return "unknown";
}

namespace {

class Writer {
 public:
  explicit Writer(std::string& out) : json_(out) {}

  void write(const NodeMetrics& node) {
    json_.begin_object();
    member("name", node.name);
    member("rank", node.rank);
    member("incarnation",
           std::to_string(
               node.incarnation));  // a string, because JavaScript's numbers are too small for it
    member("uptime_ns", node.uptime);
    if (node.certificate_time_left) {
      member("certificate_time_left_ns",
             std::chrono::duration_cast<Duration>(*node.certificate_time_left));
    }
    calls("made", node.made);
    calls("answered", node.answered);
    member("retries", node.retries);
    member("pending", node.pending);
    member("answering", node.answering);
    member("parked", node.parked);
    member("workers", node.workers);
    json_.key("queue");
    json_.begin_object();
    member("limited", node.queue.limited);
    member("accepted", node.queue.accepted);
    member("running", node.queue.running);
    member("waiting", node.queue.waiting);
    member("refused", node.queue.refused);
    json_.end_object();
    member("output_bytes", node.output_bytes);
    member("payload_bytes_in_use", node.payload_bytes_in_use);
    member("payload_bytes_kept", node.payload_bytes_kept);
    list("functions", node.functions, [this](const FunctionMetrics& function) {
      member("name", function.name);
      calls("made", function.made);
      calls("answered", function.answered);
    });
    list("peers", node.peers, [this](const PeerMetrics& peer) { write(peer); });
    list("batchers", node.batchers, [this](const BatcherMetrics& batcher) { write(batcher); });
    json_.key("rrefs");
    json_.begin_object();
    list("owned", node.rrefs.owned, [this](const RRefCount& owned) {
      member("type", owned.name);
      member("objects", owned.objects);
      member("holders", owned.holders);
      member("waiting_calls", owned.waiting_calls);
    });
    list("used", node.rrefs.used, [this](const RRefCount& used) {
      member("owner", used.name);
      member("objects", used.objects);
    });
    member("in_flight", node.rrefs.in_flight);
    json_.end_object();
    list("last_errors", node.last_errors, [this](const ErrorRecord& error) {
      member("kind", to_string(error.kind));
      member("ago_ns", error.ago);
      member("code", to_string(error.code));
      member("function", error.function);
      member("peer", error.peer);
      member("text", error.text);
    });
    json_.end_object();
  }

 private:
  template <class Value>
  void member(std::string_view name, const Value& value) {
    json_.member(name, value);
  }
  void member(std::string_view name, Duration duration) { json_.member(name, duration.count()); }
  template <class List, class Write>
  void list(std::string_view name, const List& items, const Write& write_item) {
    json_.key(name);
    json_.begin_array();
    for (const auto& item : items) {
      json_.begin_object();
      write_item(item);
      json_.end_object();
    }
    json_.end_array();
  }
  void histogram(std::string_view name, const Histogram& numbers) {
    json_.key(name);
    json_.begin_object();
    member("count", numbers.count());
    member("sum", numbers.sum());
    if (numbers.count() > 0) {
      member("mean", numbers.mean());
      member("p50", numbers.quantile(0.5));
      member("p90", numbers.quantile(0.9));
      member("p99", numbers.quantile(0.99));
      member("p999", numbers.quantile(0.999));
      member("max", numbers.max());
    }
    json_.key("buckets");
    json_.begin_array();
    for (const Histogram::Bucket& bucket : numbers.buckets()) {
      json_.begin_array();
      json_.value(bucket.lowest);
      json_.value(bucket.highest);
      json_.value(bucket.count);
      json_.end_array();
    }
    json_.end_array();
    json_.end_object();
  }
  void calls(std::string_view name, const CallMetrics& calls) {
    json_.key(name);
    json_.begin_object();
    member("calls", calls.calls);
    member("ok", calls.ok);
    member("in_flight", calls.in_flight);
    member("notifications", calls.notifications);
    member("bytes_sent", calls.bytes_sent);
    member("bytes_received", calls.bytes_received);
    json_.key("errors");
    json_.begin_object();
    for (std::size_t i = 0; i < ErrorCounts::kCodes; ++i) {
      if (calls.errors.counts[i] > 0) {
        member(i == 0 ? "other" : to_string(static_cast<ErrorCode>(i)), calls.errors.counts[i]);
      }
    }
    json_.end_object();
    histogram("latency_ns", calls.latency);
    json_.end_object();
  }
  void write(const PeerMetrics& peer) {
    member("name", peer.name);
    member("rank", peer.rank);
    member("state", peer.state);
    member("identity", peer.identity);
    member("reconnects", peer.reconnects);
    member("round_trip_ns", peer.round_trip);
    member("bytes_sent", peer.bytes_sent);
    member("bytes_received", peer.bytes_received);
    member("pending", peer.pending);
    member("answering", peer.answering);
    member("output_bytes", peer.output_bytes);
    calls("made", peer.made);
    list("functions", peer.functions, [this](const PeerCalls& function) {
      member("name", function.function);
      calls("made", function.made);
    });
  }
  void write(const BatcherMetrics& batcher) {
    member("name", batcher.name);
    member("batchers", batcher.batchers);
    member("rows", batcher.rows);
    member("answered", batcher.answered);
    member("failed", batcher.failed);
    member("rejected", batcher.rejected);
    member("invalid", batcher.invalid);
    member("expired", batcher.expired);
    member("cancelled", batcher.cancelled);
    member("left", batcher.left);
    member("dropped", batcher.dropped);
    member("batches", batcher.batches);
    member("handler_runs", batcher.handler_runs);
    member("padding", batcher.padding);
    json_.key("reasons");
    json_.begin_object();
    for (const ReasonCount& reason : batcher.reasons)
      member(reason.reason, reason.batches);
    json_.end_object();
    histogram("sizes", batcher.sizes);
    histogram("queue_wait_ns", batcher.queue_wait);
    histogram("handler_time_ns", batcher.handler_time);
    histogram("latency_ns", batcher.latency);
    member("rows_per_second", batcher.rows_per_second);
    member("queued", batcher.queued);
    member("queued_bytes", batcher.queued_bytes);
    member("held", batcher.held);
    member("running", batcher.running);
  }

  JsonWriter json_;
};

}  // namespace

std::string to_json(const NodeMetrics& metrics) {
  std::string text;
  Writer(text).write(metrics);
  return text;
}

void BatcherMetrics::add(const BatcherMetrics& other) {
  batchers += other.batchers;
  rows += other.rows;
  rejected += other.rejected;
  invalid += other.invalid;
  expired += other.expired;
  cancelled += other.cancelled;
  left += other.left;
  dropped += other.dropped;
  answered += other.answered;
  failed += other.failed;
  batches += other.batches;
  handler_runs += other.handler_runs;
  padding += other.padding;
  if (reasons.size() < other.reasons.size()) reasons.resize(other.reasons.size());
  for (std::size_t i = 0; i < other.reasons.size(); ++i) {
    reasons[i].reason = other.reasons[i].reason;
    reasons[i].batches += other.reasons[i].batches;
  }
  sizes.add(other.sizes);
  queue_wait.add(other.queue_wait);
  handler_time.add(other.handler_time);
  latency.add(other.latency);
  rows_per_second += other.rows_per_second;
  queued += other.queued;
  queued_bytes += other.queued_bytes;
  held += other.held;
  running += other.running;
}

}  // namespace batchrpc
