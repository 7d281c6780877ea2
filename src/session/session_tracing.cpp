#include <algorithm>
#include <string>
#include <utility>

#include "base/system_ids.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/call/call_extras.hpp"
#include "batchrpc/call/call_recording.hpp"
#include "call/error_kind.hpp"
#include "call/function_table.hpp"
#include "recording/call_tracer.hpp"
#include "session/session.hpp"

// What goes along with a session's calls beside their arguments, and what is recorded of them.
namespace batchrpc {
namespace {

void check(const detail::Metadata& metadata) {
  if (wire::is_within_limits(metadata)) return;
  if (std::any_of(metadata.begin(), metadata.end(),
                  [](const auto& entry) { return entry.first.empty(); })) {
    throw InvalidArgument("an entry of a call's metadata has no key (CallOptions::metadata)");
  }
  std::size_t bytes = 0;
  for (const auto& [key, value] : metadata)
    bytes += key.size() + value.size();
  throw InvalidArgument("a call takes along at most " + std::to_string(wire::kMaxMetadata) +
                        " entries of metadata, of " + std::to_string(wire::kMaxMetadataBytes) +
                        " bytes together; these are " + std::to_string(metadata.size()) + ", of " +
                        std::to_string(bytes) + " bytes (CallOptions::metadata)");
}

}  // namespace

// --- of calls of ours

// Adds to a call that is to be sent what goes along with it. What records the call; null: nobody
// does.
std::shared_ptr<detail::CallProbe> Session::send_along(const detail::FunctionKey& function,
                                                       const detail::OutgoingOptions& options,
                                                       Encoder& encoder) {
  const detail::OutgoingExtras& extras = *options.extras;
  check(extras.metadata);
  const bool recorded = extras.sink != nullptr;
  const bool asks = recorded && extras.sink->wants_record();
  wire::CallContextBody context;
  context.trace = asks ? tracer_.next_span(extras.parent, true) : extras.parent;
  if (asks) {
    context.record =
        extras.sink->wants_operators() ? wire::RecordWish::operators : wire::RecordWish::times;
  }
  context.metadata = extras.metadata;
  if (asks || extras.parent.valid() || !extras.metadata.empty())
    wire::add_context(encoder, context);
  if (!recorded) return nullptr;
  CallRecord record;
  record.encoded = loop_->now();
  record.called = extras.started != TimePoint() ? extras.started : record.encoded;
  record.function = shown_name(function.name);
  const wire::Hello self = host_->own_hello();
  record.caller = {
      .node = self.name, .rank = self.rank, .process = process_number(), .thread = thread_number()};
  record.callee.node = peer_name();
  record.span = context.trace;
  record.parent = extras.parent.valid() ? extras.parent.span_number() : 0;
  record.parent_is_external = extras.parent.valid() && !extras.parent_is_call;
  return std::make_shared<detail::CallProbe>(loop_, extras.sink, std::move(record),
                                             options.wants_reply);
}

// What the callee tells of a call that is answered by `frame`.
void Session::note_reply(detail::CallProbe& probe, const wire::FrameView& frame,
                         const std::vector<Bytes>& payloads) const {
  std::uint64_t bytes = frame.words.size_bytes();
  for (const Bytes& payload : payloads)
    bytes += payload.size();
  probe.replied(bytes);
  if (const auto callee = peer()) probe.set_callee(*callee);
  try {
    if (frame.header.kind == wire::FrameKind::error) {
      auto records = wire::read_error_record(frame);
      if (!records.empty()) probe.tells(wire::record_of(std::move(records.front())));
    } else if (frame.has_context()) {
      Decoder decoder(frame.segment(), {}, {.traversal_words = wire::kMaxRecordWords});
      probe.tells(wire::decode_side(decoder, wire::kContextInSegment));
    }
  } catch (const BadMessage&) {  // NOLINT: the result is good none the less
  }
}

// --- of the peer's

CallContext Session::context_of(const wire::FrameView& frame,
                                std::optional<TimePoint> deadline) const {
  CallContext context(*identity_.load(std::memory_order_acquire), deadline);
  const bool of_program = incoming_[frame.header.number].of_program;
  auto sink = of_program ? tracer_.sink_of_answered() : nullptr;
  if (frame.has_context() || sink) context.set_extras(extras_of(frame, std::move(sink)));
  return context;
}

// What has come with the call, which is recorded for `sink` as well, if that is not null.
detail::Ref<const detail::CallExtras> Session::extras_of(
    const wire::FrameView& frame, std::shared_ptr<detail::RecordSink> sink) const {
  const Incoming& called = incoming_[frame.header.number];
  wire::CallContextBody body;
  if (frame.has_context()) body = wire::read_context(frame);
  detail::Ref<detail::CallExtras> extras(new detail::CallExtras);
  extras->trace = body.trace;
  extras->metadata = std::move(body.metadata);
  const bool told = body.record != wire::RecordWish::none && host_->options().profiling;
  if (told || sink) {
    extras->recording = std::make_shared<detail::CallRecording>(
        loop_, body.record == wire::RecordWish::operators, host_->options().operators);
  }
  if (sink) {
    const wire::Hello self = host_->own_hello();
    CallRecord record;
    record.function = shown_name(called.name);
    const PeerIdentity& caller = **identity_.load(std::memory_order_acquire);
    record.caller = {.node = caller.name, .rank = caller.rank};
    record.callee = {.node = self.name, .rank = self.rank};
    record.span = body.trace;
    if (!told) {  // that is of what the call is a part, or none
      record.parent = body.trace.valid() ? body.trace.span_number() : 0;
      record.parent_is_external = body.trace.valid();
      record.span = tracer_.next_span(body.trace, false);
      extras->trace = record.span;
    }
    record.bytes_out = frame.words.size_bytes();
    for (const std::uint64_t size : frame.payload_sizes)
      record.bytes_out += size;
    extras->recording->show(std::move(sink), std::move(record), told);
  }
  return extras;
}

// The result goes before: what there is no room for behind it is left out.
void Session::add_record(Encoder& encoder, detail::CallRecording& recording) const {
  CallRecord record = recording.finish();
  if (!recording.is_told()) return;
  std::vector<Word>& words = encoder.words();
  const std::size_t size = words.size();
  const auto take_back = [&] {
    words.resize(size);
    words[wire::kContextPointer] = 0;
  };
  wire::encode_side(encoder, wire::kContextPointer, record);
  if (!is_too_large(encoder)) return;
  take_back();
  detail::leave_out_caused(record);
  wire::encode_side(encoder, wire::kContextPointer, record);
  if (is_too_large(encoder)) take_back();
}

std::uint64_t Session::send_error(std::uint64_t call, const std::exception_ptr& error, bool began,
                                  detail::CallRecording* recording) {
  if (host_->is_forked_copy()) return 0;  // a promise that the child's exit destroys, say
  if (recording == nullptr) return send(wire::error_frame(call, error, began));
  CallRecord record = recording->finish(detail::kind_of(error));
  const CallRecord* const told = recording->is_told() ? &record : nullptr;
  auto frame = wire::error_frame(call, error, began, told);
  if (told != nullptr && frame.size() > host_->options().max_frame_bytes / sizeof(Word)) {
    detail::leave_out_caused(record);
    frame = wire::error_frame(call, error, began, told);
  }
  recording->report_own(frame.size() * sizeof(Word));
  return send(frame);
}

}  // namespace batchrpc
