#include "wire/record.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace batchrpc::wire {
namespace {

std::int64_t number_of(TimePoint time) noexcept { return time.time_since_epoch().count(); }
TimePoint time_of(std::int64_t number) noexcept { return TimePoint(Duration(number)); }

// Limits a peer's text, which may be as long as its frame.
std::string shortened(std::string&& text) {
  constexpr std::size_t kLongest = 512;
  if (text.size() > kLongest) {
    text.resize(kLongest);
    text.shrink_to_fit();
  }
  return std::move(text);
}

PlaceBody body_of(const RecordedPlace& place) {
  return {.node = place.node, .rank = place.rank, .process = place.process, .thread = place.thread};
}
RecordedPlace place_of(PlaceBody&& body) {
  return {.node = shortened(std::move(body.node)),
          .rank = body.rank,
          .process = body.process,
          .thread = body.thread};
}

}  // namespace

TraceBytes bytes_of(const TraceContext& trace) noexcept {
  TraceBytes bytes;
  const auto behind = std::copy(trace.trace_id.begin(), trace.trace_id.end(), bytes.begin());
  *std::copy(trace.span_id.begin(), trace.span_id.end(), behind) = trace.flags;
  return bytes;
}

TraceContext trace_of(const TraceBytes& bytes) noexcept {
  TraceContext trace;
  std::copy_n(bytes.begin(), trace.trace_id.size(), trace.trace_id.begin());
  std::copy_n(bytes.begin() + trace.trace_id.size(), trace.span_id.size(), trace.span_id.begin());
  trace.flags = bytes.back();
  return trace;
}

RecordBody side_of(const CallRecord& record) {
  RecordBody body;
  body.process = record.callee.process;
  body.thread = record.callee.thread;
  body.received = number_of(record.received);
  body.begun = number_of(record.begun);
  body.finished = number_of(record.finished);
  body.batch = {.number = record.batch.number,
                .rows = record.batch.rows,
                .begin = number_of(record.batch.begin),
                .end = number_of(record.batch.end)};
  body.left_out = record.left_out;
  body.operators.reserve(record.operators.size());
  for (const OperatorRecord& ran : record.operators) {
    body.operators.push_back({.name = ran.name,
                              .begin = number_of(ran.begin),
                              .end = number_of(ran.end),
                              .thread = ran.thread,
                              .shared = ran.shared});
  }
  body.calls.reserve(record.calls.size());
  for (const CallRecord& call : record.calls)
    body.calls.push_back(body_of(call));
  return body;
}

CallRecord record_of(RecordBody&& body) {
  CallRecord record;
  record.callee.process = body.process;
  record.callee.thread = body.thread;
  record.received = time_of(body.received);
  record.begun = time_of(body.begun);
  record.finished = time_of(body.finished);
  record.batch = {.number = body.batch.number,
                  .rows = body.batch.rows,
                  .begin = time_of(body.batch.begin),
                  .end = time_of(body.batch.end)};
  record.left_out = body.left_out;
  record.operators.reserve(body.operators.size());
  for (OperatorBody& ran : body.operators) {
    record.operators.push_back({.name = shortened(std::move(ran.name)),
                                .begin = time_of(ran.begin),
                                .end = time_of(ran.end),
                                .thread = ran.thread,
                                .shared = ran.shared});
  }
  record.calls.reserve(body.calls.size());
  for (CallBody& call : body.calls)
    record.calls.push_back(record_of(std::move(call)));
  return record;
}

CallBody body_of(const CallRecord& record) {
  return {.function = record.function,
          .caller = body_of(record.caller),
          .callee = body_of(record.callee),
          .trace = bytes_of(record.span),
          .parent = record.parent,
          .called = number_of(record.called),
          .encoded = number_of(record.encoded),
          .sent = number_of(record.sent),
          .replied = number_of(record.replied),
          .ended = number_of(record.ended),
          .bytes_out = record.bytes_out,
          .bytes_in = record.bytes_in,
          .error = record.error,
          .record = side_of(record),
          .parent_is_external = record.parent_is_external,
          .shared = record.shared};
}

CallRecord record_of(CallBody&& body) {
  CallRecord record = record_of(std::move(body.record));
  record.function = shortened(std::move(body.function));
  record.caller = place_of(std::move(body.caller));
  record.callee = place_of(std::move(body.callee));
  record.span = trace_of(body.trace);
  record.parent = body.parent;
  record.called = time_of(body.called);
  record.encoded = time_of(body.encoded);
  record.sent = time_of(body.sent);
  record.replied = time_of(body.replied);
  record.ended = time_of(body.ended);
  record.bytes_out = body.bytes_out;
  record.bytes_in = body.bytes_in;
  record.error = shortened(std::move(body.error));
  record.parent_is_external = body.parent_is_external;
  record.shared = body.shared;
  return record;
}

void encode_side(Encoder& encoder, std::size_t pointer, const CallRecord& record) {
  using W = batchrpc::detail::Builtin<RecordBody>;
  W::write(encoder, pointer, side_of(record));
}

CallRecord decode_side(Decoder& decoder, std::size_t pointer) {
  using W = batchrpc::detail::Builtin<RecordBody>;
  return record_of(W::read(decoder, decoder.pointer(pointer)));
}

}  // namespace batchrpc::wire
