#include <string>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "batchrpc/base/result.hpp"
#include "call/function_table.hpp"
#include "call/local_node.hpp"
#include "session/flush_scope.hpp"
#include "session/outgoing_calls.hpp"

// The replies to a session's own calls.
namespace batchrpc {

// Removes and returns the call that was answered, unless it has ended. Its unsent payloads are
// dropped: its function was not run, or needed none of them.
std::optional<PendingCall> OutgoingCalls::take_answered(std::uint64_t id,
                                                        std::uint64_t result_bytes) {
  std::vector<Bytes> payloads;  // destroyed without the lock
  std::unique_lock lock(mutex_);
  std::optional<PendingCall> call = calls_.take(id);
  bool cut = false;
  try {
    cut = call && call->place.has_chunks && cut_off(id, payloads);
  } catch (...) {  // there is no memory; the call is dropped without the lock
    lock.unlock();
    throw;
  }
  if (call && result_bytes > 0) {  // an error is counted by fail()
    const std::uint64_t took =
        stopwatch_.between(call->called_ticks, link_->connection().read_at());
    made_.answered(call->function, took, result_bytes);
  }
  under_way_ = calls_.size();
  lock.unlock();
  if (cut) link_->flush();
  serve_credit_soon();
  return call;
}

void OutgoingCalls::take_result(const wire::FrameView& frame, std::vector<Bytes>& payloads) {
  std::optional<PendingCall> call =
      take_answered(frame.header.id, frame.words.size_bytes() + bytes_of(payloads));
  if (!call) return;  // it has timed out
  detail::own_payloads(payloads);
  detail::Reply reply{.error = nullptr, .segment = frame.segment(), .payloads = payloads};
  detail::CallProbe* const probe = call->probe();
  if (probe != nullptr) note_reply(*probe, frame, payloads);
  reply.probe = probe;
  const detail::CurrentNode current(link_->node());
  call->handler(reply);
  if (probe != nullptr) probe->end();
  keep_pace();
}

void OutgoingCalls::take_error(const wire::FrameView& frame) {
  const wire::ErrorBody body = wire::read_error(frame);
  std::optional<PendingCall> call = take_answered(frame.header.id, 0);
  if (!call) return;
  for (const auto& hook : call->delivery_hooks()) {
    if (!body.may_have_run) hook->taken_back();
  }
  std::shared_ptr<CallDiagnostics> diagnostics;
  {
    const std::lock_guard lock(mutex_);
    made_.received(call->function, frame.words.size_bytes());
    diagnostics = diagnostics_of(*call, true);
  }
  std::exception_ptr error = error_of(body, diagnostics->function);
  if (detail::CallProbe* const probe = call->probe()) note_reply(*probe, frame, {});
  fail(call->handler, call->function, call->probe(), std::move(error), std::move(diagnostics),
       Guarantee::none);
  keep_pace();
}

void OutgoingCalls::lose_reply(std::uint64_t id, std::uint64_t bytes, NotTaken why) {
  std::optional<PendingCall> call = take_answered(id, 0);
  if (!call) return;
  std::shared_ptr<CallDiagnostics> diagnostics;
  {
    const std::lock_guard lock(mutex_);
    made_.received(call->function, bytes);
    diagnostics = diagnostics_of(*call, true);
  }
  const std::string what =
      "the reply of '" + diagnostics->function + "' on " + link_->peer_name() + " was dropped";
  fail(call->handler, call->function, call->probe(),
       not_taken_error(why, what, link_->options(), true), std::move(diagnostics), Guarantee::none);
  keep_pace();
}

// Returns the error that the peer has sent, as the caller gets it.
std::exception_ptr OutgoingCalls::error_of(const wire::ErrorBody& body,
                                           const std::string& function) const {
  const std::string peer = link_->peer_name();
  const auto code = static_cast<ErrorCode>(body.code);
  if (code == ErrorCode::remote_error) {
    return std::make_exception_ptr(RemoteError(body.message, body.type, peer,
                                               body.function.empty() ? function : body.function,
                                               body.may_have_run));
  }
  // The calls of a node that joins are the library's own: the program does not know their names.
  const std::string quoted = "'" + function + "'";
  const bool is_named =
      function.starts_with(kReservedPrefix) || body.message.find(quoted) != std::string::npos;
  const std::string text = is_named ? body.message : quoted + " on " + peer + ": " + body.message;
  if (code != ErrorCode::overloaded) return make_error(code, text, body.may_have_run);
  constexpr std::uint64_t kLongestPause = 1'000'000ULL * 60 * 60;  // an hour, in microseconds
  const std::chrono::microseconds pause(std::min(body.retry_after, kLongestPause));
  return std::make_exception_ptr(Overloaded(text, pause, body.may_have_run));
}

// Adds the callee's part of the record, from its answer `frame`, to the record of a call.
void OutgoingCalls::note_reply(detail::CallProbe& probe, const wire::FrameView& frame,
                               const std::vector<Bytes>& payloads) const {
  probe.replied(frame.words.size_bytes() + bytes_of(payloads));
  if (const auto callee = link_->peer()) probe.set_callee(*callee);
  try {
    if (frame.header.kind == wire::FrameKind::error) {
      auto records = wire::read_error_record(frame);
      if (!records.empty()) probe.tells(wire::record_of(std::move(records.front())));
    } else if (frame.has_context()) {
      Decoder decoder(frame.segment(), {}, {.traversal_words = wire::kMaxRecordWords});
      probe.tells(wire::decode_side(decoder, wire::kContextInSegment));
    }
  } catch (const BadMessage&) {  // NOLINT: the result is valid without it
  }
}

std::optional<std::shared_ptr<detail::PayloadTarget>> OutgoingCalls::target_of_result(
    std::uint64_t call) {
  const std::lock_guard lock(mutex_);
  PendingCall* const pending = calls_.find(call);
  if (pending == nullptr) return std::nullopt;
  if (!pending->belongings) return nullptr;
  return std::shared_ptr<detail::PayloadTarget>(std::move(pending->belongings->payload_target));
}

void OutgoingCalls::take_credit(const wire::FrameHeader& credit) {
  if (credit.value == wire::kNoCredit) {
    const std::lock_guard lock(mutex_);
    const bool waits = credit.id >= CallTable::kNotifications || calls_.find(credit.id) != nullptr;
    if (waits) link_->output().pause(credit.id);
    return;
  }
  if (credit.value != wire::kAllCredit) return;  // sent by a later minor version
  link_->output().resume(credit.id);
  link_->flush();
}

void OutgoingCalls::keep_pace() {
  if (pace_.is_due(under_way_)) FlushScope::flush_current();
}

}  // namespace batchrpc
