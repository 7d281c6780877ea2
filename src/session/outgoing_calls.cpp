#include "session/outgoing_calls.hpp"

#include <algorithm>
#include <map>
#include <new>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "call/call_diagnostics_text.hpp"
#include "session/flush_scope.hpp"

// How a session's own calls end without a reply: timed out, cancelled, or with the session.
namespace batchrpc {

OutgoingCalls::OutgoingCalls(std::shared_ptr<SessionLink> link)
    : link_(std::move(link)),
      stopwatch_(*link_->loop()),
      made_(link_->counters()),
      credit_(link_->options().limits.max_outstanding_bytes) {
  if (!link_->expected_peer().empty()) set_peer_name(link_->expected_peer());
}

OutgoingCalls::~OutgoingCalls() {
  if (timer_ != 0) link_->loop()->cancel(timer_);
}

void OutgoingCalls::set_peer_name(const std::string& peer) {
  if (link_->counters() == nullptr) return;
  const std::lock_guard lock(mutex_);
  link_->counters()->name(made_, peer);
}

// The caller must hold the lock.
void OutgoingCalls::arm_timer(TimePoint deadline) {
  if (timer_ != 0) link_->loop()->cancel(timer_);
  timer_at_ = deadline;
  timer_ = link_->loop()->schedule(deadline, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->expire();
  });
}

void OutgoingCalls::expire() {
  std::vector<Bytes> payloads;  // destroyed without the lock
  std::vector<Ended> expired;
  {
    const std::lock_guard lock(mutex_);
    timer_ = 0;
    timer_at_ = TimePoint::max();
    expired = end_calls(calls_.take_expired(link_->loop()->now()), payloads);
    if (calls_.earliest_deadline() != TimePoint::max()) arm_timer(calls_.earliest_deadline());
  }
  serve_credit_soon();
  link_->connection().flush();  // the peer learns which calls it has only in part
  for (Ended& call : expired) {
    fail(call,
         std::make_exception_ptr(TimedOut(
             "'" + call.name() + "' on " + link_->peer_name() + " did not answer in time" +
                 (call.sent ? "; it may have run" : "; it could not be sent, and never ran") +
                 " (CallOptions::timeout, NodeOptions::call_timeout)",
             call.sent)),
         Guarantee::deadline);
  }
}

bool OutgoingCalls::cancel_call(std::uint64_t id) noexcept {
  if (link_->is_forked_copy()) return false;  // a thread of the parent may have the lock
  try {
    return end_cancelled(id);
  } catch (const std::bad_alloc&) {  // its promise is broken, and the peer is not told
    return false;
  }
}

bool OutgoingCalls::end_cancelled(std::uint64_t id) {
  std::vector<Bytes> payloads;  // destroyed without the lock
  std::vector<Ended> ended;
  {
    const std::lock_guard lock(mutex_);
    std::optional<PendingCall> call = calls_.take(id);
    if (!call) return false;
    std::vector<PendingCall> calls;
    calls.push_back(*std::move(call));
    ended = end_calls(std::move(calls), payloads);
  }
  serve_credit_soon();
  if (!FlushScope::defer(link_->connection())) link_->connection().flush_soon();
  for (Ended& call : ended) {
    fail(call,
         std::make_exception_ptr(Cancelled("'" + call.name() + "' on " + link_->peer_name() +
                                               " was cancelled" +
                                               (call.sent ? "; it may have run" : "; it never ran"),
                                           call.sent)),
         Guarantee::cancellation);
  }
  return true;
}

void OutgoingCalls::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

bool OutgoingCalls::is_closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

OutgoingCalls::Failed OutgoingCalls::fail_all(const MakeError& error, Guarantee guarantee) {
  std::vector<Bytes> payloads;  // destroyed without the lock
  std::vector<Ended> calls;
  std::vector<CallCredit::Wait> waits;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    calls = end_calls(calls_.take_all(), payloads);
    waits = credit_.take_all();
  }
  Failed failed;
  for (Ended& call : calls) {
    ++(call.sent ? failed.left : failed.not_sent);
    try {
      std::exception_ptr why = error(call.name(), call.sent);
      if (call.kept && !call.sent) why = call.kept->not_sent(std::move(why));
      fail(call, std::move(why), guarantee);
    } catch (const std::bad_alloc&) {  // NOLINT: its promise is broken, and the others go on
    }
  }
  for (CallCredit::Wait& wait : waits)
    wait.promise.set_error(error(std::string(kCreditWait), false));
  return failed;
}

// Ends the calls, and returns what is needed to report that. The caller must hold the lock.
std::vector<OutgoingCalls::Ended> OutgoingCalls::end_calls(std::vector<PendingCall> calls,
                                                           std::vector<Bytes>& payloads) {
  std::vector<Ended> ended;
  ended.reserve(calls.size());
  for (PendingCall& call : calls) {
    const bool sent = !take_back(call, payloads);
    for (const auto& hook : call.delivery_hooks()) {
      if (!sent) hook->taken_back();
    }
    ended.push_back({.handler = std::move(call.handler),
                     .function = call.function,
                     .sent = sent,
                     .diagnostics = diagnostics_of(call, sent),
                     .kept = std::move(call.kept),
                     .belongings = std::move(call.belongings)});
  }
  return ended;
}

// Withdraws the unsent part of a call that has ended. Returns whether the call surely never runs.
// The caller must hold the lock.
bool OutgoingCalls::take_back(const PendingCall& call, std::vector<Bytes>& payloads) {
  if (link_->output().retract(call.place, payloads)) return true;
  if (cut_off(call.id, payloads)) return true;
  notify_cancelled(call.id);
  return false;
}

// Drops the payloads of a call that are not sent yet. Returns whether there were any; the peer then
// drops the others. The caller must hold the lock.
bool OutgoingCalls::cut_off(std::uint64_t call, std::vector<Bytes>& payloads) {
  if (!link_->output().cut_off(call, payloads)) return false;
  notify_cancelled(call);
  return true;
}

void OutgoingCalls::notify_cancelled(std::uint64_t call) {
  const auto frame = wire::plain_frame({.kind = wire::FrameKind::cancel, .id = call});
  link_->output().append(frame, 0, false, {});
}

// The caller must hold the lock. `left`: the call was sent, or may have been.
std::shared_ptr<CallDiagnostics> OutgoingCalls::diagnostics_of(const PendingCall& call,
                                                               bool left) const {
  auto diagnostics = std::make_shared<CallDiagnostics>();
  diagnostics->function = numbers_.name_of(call.function);
  diagnostics->called_at = call.called_at;
  diagnostics->first_called_at = call.called_at;
  diagnostics->deadline = call.deadline;
  diagnostics->left = left;
  diagnostics->events = link_->log().events();
  if (!left) return diagnostics;
  if (!call.waited) {
    diagnostics->left_at = call.called_at;
  } else if (diagnostics->events) {
    const auto& events = *diagnostics->events;
    const auto there =
        std::find_if(events.begin(), events.end(), [&](const ConnectionEvent& event) {
          return event.at >= call.called_at && (event.kind == ConnectionEvent::Kind::connected ||
                                                event.kind == ConnectionEvent::Kind::resumed);
        });
    if (there != events.end()) diagnostics->left_at = there->at;
  }
  return diagnostics;
}

void OutgoingCalls::fail(Ended& call, std::exception_ptr error, Guarantee guarantee) {
  detail::CallProbe* const probe = call.belongings ? call.belongings->probe.get() : nullptr;
  fail(call.handler, call.function, probe, std::move(error), std::move(call.diagnostics),
       guarantee);
}

// Reports to the caller that its call has failed under `guarantee`. If that is none, the guarantee
// of the error's code applies.
void OutgoingCalls::fail(detail::ReplyHandler& handler, std::uint32_t function,
                         detail::CallProbe* probe, std::exception_ptr error,
                         std::shared_ptr<CallDiagnostics> diagnostics, Guarantee guarantee) {
  const std::string peer = link_->peer_name();
  const TimePoint now = link_->loop()->now();
  ErrorRecord record{.kind = ErrorRecord::Kind::call,
                     .at = now,
                     .code = ErrorCode::remote_error,
                     .function = diagnostics->function,
                     .peer = peer};
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    record.text = known.what();
    if (const auto* const own = dynamic_cast<const Error*>(&known)) record.code = own->code();
  } catch (...) {
    record.text = describe(error);
  }
  {
    const std::lock_guard lock(mutex_);
    made_.failed(function, record.code);
  }
  if (link_->counters() != nullptr) link_->counters()->errors.add(std::move(record));
  diagnostics->peer = peer;
  diagnostics->ended_at = std::max(now, diagnostics->called_at);
  diagnostics->guarantee = guarantee;
  report_diagnostics(error, std::move(diagnostics));
  if (probe != nullptr) probe->failed(error);
  detail::Reply reply;
  reply.error = std::move(error);
  reply.probe = probe;
  handler(reply);
  if (probe != nullptr) probe->end();
}

std::size_t OutgoingCalls::pending() const {
  const std::lock_guard lock(mutex_);
  return calls_.size();
}

std::vector<std::string> OutgoingCalls::pending_functions() const {
  std::map<std::string, std::size_t> counts;
  {
    const std::lock_guard lock(mutex_);
    calls_.for_each([&](const PendingCall& call) { ++counts[numbers_.name_of(call.function)]; });
  }
  return count_texts(counts);
}

}  // namespace batchrpc
