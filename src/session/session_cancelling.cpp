#include <algorithm>
#include <string>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "call/function_table.hpp"
#include "session/flush_scope.hpp"
#include "session/session.hpp"

// Deadlines and cancellation: of a session's own calls, and of the peer's.
namespace batchrpc {

// --- of calls of ours

// The caller must hold the lock. False when the call in which it was made was cancelled meanwhile.
bool Session::note_submitted(PendingCall& call, const detail::OutgoingOptions& options) {
  if (as_submitter_.expired()) as_submitter_ = weak_from_this();
  detail::SubmittedCall submitted{as_submitter_, call.id};
  const bool nested = call.belongings && call.belongings->nested;
  const bool goes_on = !nested || call.belongings->nested->follow(submitted);
  call.handler.receiver().submitted(std::move(submitted), options.cancel_when_dropped);
  return goes_on;
}

bool Session::cancel_call(std::uint64_t id) noexcept {
  if (is_forked_copy()) return false;  // a thread of the parent may have the lock
  std::vector<Bytes> payloads;         // destroyed without the lock
  std::vector<PendingCall> calls;
  std::vector<EndedCall> ended;
  {
    const std::lock_guard lock(mutex_);
    std::optional<PendingCall> call = calls_.take(id);
    if (!call) return false;
    calls.push_back(*std::move(call));
    ended = end_calls(std::move(calls), payloads);
  }
  serve_credit_soon();
  if (!FlushScope::defer(*connection_)) connection_->flush_soon();
  for (EndedCall& call : ended) {
    fail({call.handler, call.number, call.probe()},
         std::make_exception_ptr(Cancelled("'" + call.function + "' on " + peer_name() +
                                               " was cancelled" +
                                               (call.sent ? "; it may have run" : "; it never ran"),
                                           call.sent)),
         std::move(call.diagnostics), Guarantee::cancellation);
  }
  return true;
}

// --- of the peer's

std::shared_ptr<detail::ReplySink> Session::keep(const detail::Ref<detail::CallState>& call,
                                                 bool wants_reply) {
  answering_.fetch_add(1, std::memory_order_relaxed);
  if (!kept_.add(*call) && wants_reply) call->cancel();
  return shared_from_this();
}

void Session::answered(const detail::CallState& call) {
  answering_.fetch_sub(1, std::memory_order_relaxed);
  kept_.remove(call);
}

bool Session::is_forked_copy() const noexcept { return host_->is_forked_copy(); }

// The coarse clock lags, by some milliseconds at most, and costs a fourth.
bool Session::is_over(TimePoint deadline) const noexcept {
  if (loop_->coarse_now() + std::chrono::milliseconds(100) < deadline) return false;
  return loop_->now() >= deadline;
}

// Wherever the call is: coming in, in line behind one that comes in, in a queue, running.
void Session::handle_cancel(std::uint64_t call) {
  if (const auto dropped = assembler_.drop(call)) {
    const auto key = ordering_key_of(wire::parse_frame(dropped->words));
    if (!key) return;
    order_.give_up(*key, call);
    run_in_turn(*key);
  } else if (!order_.remove(call)) {
    if (const auto kept = kept_.take(call)) kept->cancel();
  }
}

void Session::refuse_waiting(const std::exception_ptr& error) {
  const auto refuse = [&](std::uint64_t call) {
    if (call < CallTable::kNotifications) send_error(call, error, false, nullptr);
  };
  for (const auto& call : kept_.all()) {
    if (call->cancel_if_waiting()) refuse(call->id);
  }
  for (const PayloadAssembler::Whole& call : order_.take_all())
    refuse(wire::parse_frame(call.words).header.id);
  for (const std::uint64_t call : assembler_.calls())
    refuse(call);  // the caller takes back what is still to come of it
}

void Session::cancel_incoming() {
  caller_gone_ = true;
  for (const auto& call : kept_.close()) {
    if (call->id < CallTable::kNotifications) call->cancel();
  }
}

// A call that has waited since its frame came.
void Session::dispatch_late(PayloadAssembler::Whole whole) {
  const wire::FrameView frame = wire::parse_frame(whole.words);
  const bool wants_reply = (frame.header.flags & wire::kNoReply) == 0;
  if (caller_gone_ && wants_reply) return;
  if (refuses_for_replies(frame)) return;
  detail::CallArguments arguments{.segment = frame.segment(),
                                  .payloads = std::move(whole.payloads),
                                  .receive_plan = std::move(whole.kept)};
  detail::IncomingCall call(*this, frame.header.id, wants_reply, context_of(frame, whole.deadline),
                            arguments);
  call.set_waited();
  hand_over(frame.header.number, call);
}

}  // namespace batchrpc
