#include "batchrpc/profile/otlp.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string_view>
#include <vector>

#include "base/hex.hpp"
#include "base/json_writer.hpp"
#include "base/mixed.hpp"
#include "batchrpc/base/version.hpp"
#include "batchrpc/profile/call_phases.hpp"
#include "batchrpc/profile/clock_alignment.hpp"
#include "profile/node_list.hpp"
#include "profile/times.hpp"
#include "profile/walk.hpp"

namespace batchrpc {
namespace {

// The most spans of a line; collectors take far more at once.
constexpr std::size_t kSpansOfLine = 1000;

// Span::SpanKind and Status::StatusCode of opentelemetry/proto/trace/v1/trace.proto.
enum class SpanKind : int { internal = 1, server = 2, client = 3 };
constexpr int kStatusError = 2;

// Derives an id from another one.
std::uint64_t derived_id(std::uint64_t id) {
  id = mixed(id + kGolden);
  return id == 0 ? 1 : id;  // zero means none
}

struct Span {
  const CallRecord* call = nullptr;
  const OperatorRecord* run = nullptr;  // null: the span is of the call itself
  SpanKind kind = SpanKind::client;
  std::uint64_t id = 0;
  std::uint64_t parent = 0;  // 0: none
  CallPhases phases{};       // for client spans
  TimePoint begin{};
  TimePoint end{};
};

class Otlp {
 public:
  using Take = std::function<void(std::string& line)>;

  Otlp(const Recording& recording, Duration wall_clock_offset, const OtlpOptions& options)
      : clocks_(recording), nodes_(recording), offset_(wall_clock_offset) {
    spans_.resize(nodes_.nodes().size());
    profile::for_each_call(recording.calls, [&](const CallRecord& call, const CallRecord* parent) {
      if (call.span.valid()) add(call, parent, options);
    });
  }

  void write(const Take& take) const {
    for (std::size_t node = 0; node < spans_.size(); ++node) {
      for (std::size_t i = 0; i < spans_[node].size(); i += kSpansOfLine) {
        std::string line;
        write_line(line, node, i, std::min(i + kSpansOfLine, spans_[node].size()));
        take(line);
      }
    }
  }

 private:
  void add(const CallRecord& call, const CallRecord* parent, const OtlpOptions& options) {
    const std::optional<Duration> ahead = clocks_.callee_ahead(call);
    const CallTimes times = CallTimes::of(call, ahead);
    if (!profile::is_known(times.called)) return;
    const bool has_caller = CallTimes::has_caller(call);
    const std::string& teller = has_caller ? call.caller.node : call.callee.node;
    const Duration caller_ahead = times.called - clocks_.align(teller, times.called);
    const std::uint64_t client = call.span.span_number();
    std::uint64_t cause = call.parent;
    if (cause == 0 && parent != nullptr) cause = parent->span.span_number();
    const bool of_call = cause != 0 && !call.parent_is_external;
    if (of_call && (parent == nullptr || CallTimes::has_callee(*parent))) {
      cause = derived_id(cause);
    }
    if (has_caller) {
      spans_[nodes_.index(call.caller.node)].push_back({.call = &call,
                                                        .kind = SpanKind::client,
                                                        .id = client,
                                                        .parent = cause,
                                                        .phases = CallPhases::of(times),
                                                        .begin = times.called - caller_ahead,
                                                        .end = times.ended - caller_ahead});
    }
    if (!CallTimes::has_callee(call)) return;
    const std::uint64_t server = derived_id(client);
    auto& of_callee = spans_[nodes_.index(call.callee.node)];
    of_callee.push_back({.call = &call,
                         .kind = SpanKind::server,
                         .id = server,
                         .parent = has_caller ? client : cause,
                         .begin = times.callee.received - caller_ahead,
                         .end = times.callee.finished - caller_ahead});
    if (!options.operators) return;
    std::uint64_t id = server;
    for (const OperatorRecord& run : call.operators) {
      id = derived_id(id);
      if (!profile::is_known(run.begin) || !profile::is_known(run.end)) continue;
      const Duration back = times.callee_ahead + caller_ahead;
      of_callee.push_back({.call = &call,
                           .run = &run,
                           .kind = SpanKind::internal,
                           .id = id,
                           .parent = server,
                           .begin = run.begin - back,
                           .end = std::max(run.begin, run.end) - back});
    }
  }

  void write_line(std::string& line, std::size_t node, std::size_t first, std::size_t end) const {
    JsonWriter json(line);
    json.begin_object();
    json.key("resourceSpans");
    json.begin_array();
    json.begin_object();
    json.key("resource");
    json.begin_object();
    json.key("attributes");
    json.begin_array();
    const auto& of = nodes_.nodes()[node];
    attribute(json, "service.name", of.name);
    attribute(json, "service.instance.id", of.rank < 0 ? of.name : std::to_string(of.rank));
    if (of.process != 0) attribute(json, "process.pid", of.process);
    json.end_array();
    json.end_object();
    json.key("scopeSpans");
    json.begin_array();
    json.begin_object();
    json.key("scope");
    json.begin_object();
    json.member("name", "batchrpc");
    json.member("version", version());
    json.end_object();
    json.key("spans");
    json.begin_array();
    for (std::size_t i = first; i < end; ++i)
      write_span(json, spans_[node][i]);
    json.end_array();
    json.end_object();
    json.end_array();
    json.end_object();
    json.end_array();
    json.end_object();
    line += '\n';
  }

  void write_span(JsonWriter& json, const Span& span) const {
    const CallRecord& call = *span.call;
    json.begin_object();
    json.member("traceId", hex(call.span.trace_id));
    json.member("spanId", hex(span.id));
    if (span.parent != 0) json.member("parentSpanId", hex(span.parent));
    json.member("flags", call.span.flags);
    json.member("name", span.run == nullptr ? call.function : span.run->name);
    json.member("kind", static_cast<int>(span.kind));
    json.member("startTimeUnixNano", unix_time(span.begin));
    json.member("endTimeUnixNano", unix_time(span.end));
    json.key("attributes");
    json.begin_array();
    if (span.run == nullptr) {
      write_attributes(json, span);
    } else {
      if (span.run->thread != 0) attribute(json, "thread.id", span.run->thread);
      if (span.run->shared && call.batch.number != 0)
        attribute(json, "batchrpc.batch.number", call.batch.number);
    }
    json.end_array();
    if (is_tellers(span) && !call.error.empty()) {
      json.key("status");
      json.begin_object();
      json.member("code", kStatusError);
      json.member("message", call.error);
      json.end_object();
    }
    json.end_object();
  }

  // Whether the span belongs to the side that reports the call's outcome: the caller, or the callee
  // if the caller reported nothing or the call failed only at the callee.
  static bool is_tellers(const Span& span) {
    const bool by_caller = CallTimes::has_caller(*span.call) && !span.call->failed_at_callee_alone;
    return span.kind == (by_caller ? SpanKind::client : SpanKind::server);
  }

  static void write_attributes(JsonWriter& json, const Span& span) {
    const CallRecord& call = *span.call;
    attribute(json, "rpc.system", std::string_view("batchrpc"));
    attribute(json, "rpc.method", call.function);
    attribute(json, "batchrpc.caller", call.caller.node);
    attribute(json, "batchrpc.callee", call.callee.node);
    attribute(json, "batchrpc.bytes_out", call.bytes_out);
    attribute(json, "batchrpc.bytes_in", call.bytes_in);
    if (call.batch.number != 0) {
      attribute(json, "batchrpc.batch.number", call.batch.number);
      attribute(json, "batchrpc.batch.rows", call.batch.rows);
    }
    if (is_tellers(span)) {
      if (!call.error.empty()) attribute(json, "error.type", call.error);
      if (call.left_out != 0) attribute(json, "batchrpc.left_out", call.left_out);
    }
    if (span.kind != SpanKind::client) return;
    for (const CallPhase& phase : kCallPhases) {
      attribute(json, "batchrpc.phase." + std::string(phase.name) + "_ns",
                static_cast<std::uint64_t>((span.phases.*phase.field).count()));
    }
  }

  static void attribute(JsonWriter& json, std::string_view key, std::string_view value) {
    attribute(json, key, "stringValue", value);
  }
  // JSON writes 64-bit numbers as strings.
  static void attribute(JsonWriter& json, std::string_view key, std::uint64_t value) {
    attribute(json, key, "intValue", std::to_string(value));
  }
  static void attribute(JsonWriter& json, std::string_view key, std::string_view type,
                        std::string_view value) {
    json.begin_object();
    json.member("key", key);
    json.key("value");
    json.begin_object();
    json.member(type, value);
    json.end_object();
    json.end_object();
  }

  std::string unix_time(TimePoint time) const {
    return std::to_string(std::max(Duration::zero(), time.time_since_epoch() + offset_).count());
  }

  ClockAlignment clocks_;
  profile::NodeList nodes_;
  Duration offset_;
  std::vector<std::vector<Span>> spans_;  // for each node
};

}  // namespace

std::string otlp(const Recording& recording, Duration wall_clock_offset,
                 const OtlpOptions& options) {
  std::string lines;
  Otlp(recording, wall_clock_offset, options).write([&](std::string& line) { lines += line; });
  return lines;
}

void otlp(const Recording& recording, Duration wall_clock_offset, std::ostream& out,
          const OtlpOptions& options) {
  Otlp(recording, wall_clock_offset, options).write([&](std::string& line) { out << line; });
}

}  // namespace batchrpc
