#include <utility>

#include "base/plain_text.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/call/call_extras.hpp"
#include "batchrpc/call/call_recording.hpp"
#include "call/error_kind.hpp"
#include "call/function_table.hpp"
#include "recording/call_tracer.hpp"
#include "session/incoming_calls.hpp"

// The context of the peer's calls, and the replies to them.
namespace batchrpc {
namespace {

// The stack that an exception of LibTorch has in its text is of use here alone.
void log_whole_text(const Log& log, std::string_view function, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& thrown) {
    const std::string text = thrown.what() != nullptr ? thrown.what() : "";
    if (without_stack(text).size() < text.size())
      log.debug("'" + std::string(function) + "' threw, in full: " + text);
  } catch (...) {  // NOLINT: describe() has all of it
  }
}

}  // namespace

// --- context

CallContext IncomingCalls::context_of(const CalledFunction& function, const wire::FrameView& frame,
                                      std::optional<TimePoint> deadline) const {
  CallContext context(link_->identity(), deadline);
  auto sink = function.of_program ? link_->parts().tracer.sink_of_answered() : nullptr;
  if (frame.has_context() || sink)
    detail::ContextAccess::set_extras(context, extras_of(function, frame, std::move(sink)));
  return context;
}

// Returns the extras that have come with the call. If `sink` is not null, the call is recorded for
// it as well.
detail::Ref<const detail::CallExtras> IncomingCalls::extras_of(
    const CalledFunction& function, const wire::FrameView& frame,
    std::shared_ptr<detail::RecordSink> sink) const {
  wire::CallContextBody body;
  if (frame.has_context()) body = wire::read_context(frame);
  detail::Ref<detail::CallExtras> extras(new detail::CallExtras);
  extras->trace = body.trace;
  extras->metadata = std::move(body.metadata);
  const bool told = body.record != wire::RecordWish::none && link_->options().profiling.enabled;
  if (told || sink) {
    extras->recording = std::make_shared<detail::CallRecording>(
        link_->loop(), body.record == wire::RecordWish::operators,
        link_->options().profiling.operators);
  }
  if (sink) {
    const wire::Hello self = link_->host().own_hello();
    CallRecord record;
    record.function = function.shown;
    const PeerIdentity& caller = *link_->identity();
    record.caller = {.node = caller.name, .rank = caller.rank};
    record.callee = {.node = self.name, .rank = self.rank};
    record.span = body.trace;
    if (!told) {  // the span is the one that the call is a part of, or none
      record.parent = body.trace.valid() ? body.trace.span_number() : 0;
      record.parent_is_external = body.trace.valid();
      record.span = link_->parts().tracer.next_span(body.trace, false);
      extras->trace = record.span;
    }
    record.bytes_out = frame.words.size_bytes();
    for (const std::uint64_t size : frame.payload_sizes)
      record.bytes_out += size;
    extras->recording->show(std::move(sink), std::move(record), told);
  }
  return extras;
}

// --- replies

void IncomingCalls::send_result(std::uint64_t call, Encoder& encoder,
                                detail::CallRecording* recording) {
  if (link_->is_forked_copy()) return;
  const auto what = [this] { return "the result for " + link_->peer_name(); };
  if (recording != nullptr) {
    link_->check_size(encoder, what);
    add_record(encoder, *recording);
  }
  wire::finish_frame(encoder, {.kind = wire::FrameKind::result, .id = call});
  link_->check_size(encoder, what);
  std::uint64_t bytes = 0;
  if (recording != nullptr) {
    bytes = encoder.words().size() * sizeof(Word) + bytes_of(encoder.payloads());
  }
  if (encoder.one_use()) send_delivery_hooks(encoder);
  link_->output().append(encoder.words(), call, true, std::move(encoder.payloads()));
  encoder.delivery_hooks().clear();
  if (recording != nullptr) recording->report_own(bytes);  // nothing has failed
  link_->flush();
}

// Frames arrive in order, but payloads arrive later. The delivery hooks of a result are therefore
// sent with the first of its payloads.
void IncomingCalls::send_delivery_hooks(Encoder& encoder) {
  link_->notify_sent(encoder.delivery_hooks(), true);
  if (encoder.payloads().empty()) return;
  struct Owner {
    std::shared_ptr<const void> bytes;
    std::vector<std::shared_ptr<DeliveryHook>> delivery_hooks;
  };
  Bytes& first = encoder.payloads().front();
  first = Bytes(std::make_shared<Owner>(Owner{first.owner(), std::move(encoder.delivery_hooks())}),
                first.span());
  encoder.delivery_hooks().clear();
}

// Adds the record behind the result. Parts of it that do not fit there are left out.
void IncomingCalls::add_record(Encoder& encoder, detail::CallRecording& recording) const {
  CallRecord record = recording.finish();
  if (!recording.is_told()) return;
  std::vector<Word>& words = encoder.words();
  const std::size_t size = words.size();
  const auto undo = [&] {
    words.resize(size);
    words[wire::kContextPointer] = 0;
  };
  wire::encode_side(encoder, wire::kContextPointer, record);
  if (!link_->is_too_large(encoder)) return;
  undo();
  detail::leave_out_caused(record);
  wire::encode_side(encoder, wire::kContextPointer, record);
  if (link_->is_too_large(encoder)) undo();
}

std::uint64_t IncomingCalls::send_error(std::uint64_t call, const std::exception_ptr& error,
                                        bool began, detail::CallRecording* recording) {
  if (link_->is_forked_copy()) return 0;  // for example, a promise that the child's exit destroys
  if (recording == nullptr) return link_->send(wire::error_frame(call, error, began));
  CallRecord record = recording->finish(detail::kind_of(error));
  const CallRecord* const told = recording->is_told() ? &record : nullptr;
  auto frame = wire::error_frame(call, error, began, told);
  if (told != nullptr && frame.size() > link_->options().limits.max_frame_bytes / sizeof(Word)) {
    detail::leave_out_caused(record);
    frame = wire::error_frame(call, error, began, told);
  }
  recording->report_own(frame.size() * sizeof(Word));
  return link_->send(frame);
}

void IncomingCalls::handler_threw(std::string_view function, const std::exception_ptr& error,
                                  bool of_notification) {
  const std::string caller = link_->peer_name();
  link_->parts().log_limits.handler_errors.write(
      link_->parts().log, LogLevel::warning, link_->loop()->now(),
      "'" + std::string(function) + "', called by " + caller + ", threw " + type_name(error) +
          ": " + describe(error) +
          (of_notification ? " (a notification: its caller does not learn of it)" : ""));
  const Log& log = link_->parts().log;
  if (log.enabled(LogLevel::debug)) log_whole_text(log, function, error);
  const auto& report = link_->options().logging.on_handler_error;
  if (!report) return;
  try {
    report({.function = function,
            .caller = caller,
            .error = error,
            .of_notification = of_notification});
  } catch (...) {  // NOLINT: see LogOptions::on_handler_error
  }
}

// --- calls that outlive their message

std::shared_ptr<detail::ReplySink> IncomingCalls::keep(const detail::Ref<detail::CallState>& call,
                                                       bool wants_reply) {
  answering_.fetch_add(1, std::memory_order_relaxed);
  if (!in_flight_.add(*call) && wants_reply) call->cancel();
  const auto session = session_.lock();
  return session ? std::shared_ptr<detail::ReplySink>(session, this) : shared_from_this();
}

void IncomingCalls::answered(const detail::CallState& call) {
  answering_.fetch_sub(1, std::memory_order_relaxed);
  in_flight_.remove(call);
}

// The coarse clock lags by some milliseconds at most, and costs a fourth.
bool IncomingCalls::is_over(TimePoint deadline) const noexcept {
  const Loop& loop = *link_->loop();
  if (loop.coarse_now() + std::chrono::milliseconds(100) < deadline) return false;
  return loop.now() >= deadline;
}

void IncomingCalls::send_credit(std::uint64_t call, std::uint64_t credit) {
  if (link_->is_forked_copy()) return;
  const auto frame =
      wire::plain_frame({.kind = wire::FrameKind::credit, .id = call, .value = credit});
  link_->output().append(frame, 0, false, {});
  link_->connection().flush_soon();  // this thread may compute for long, or hold a lock
}

}  // namespace batchrpc
