#include <algorithm>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "call/call_diagnostics_text.hpp"
#include "session/session.hpp"

// What a session knows of its own past: the stories of calls that fail, and its figures.
namespace batchrpc {
namespace {

// A ping's id is this bit and the nanoseconds since its connection began; the pong has the same.
// What is left of a call that was taken back looks like a pong and has the call's id, which is
// less.
constexpr std::uint64_t kEcho = std::uint64_t{1} << 63;

}  // namespace

Guarantee guarantee_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::timed_out:
      return Guarantee::deadline;
    case ErrorCode::cancelled:
      return Guarantee::cancellation;
    case ErrorCode::peer_lost:
      return Guarantee::dead_peer;
    case ErrorCode::overloaded:
      return Guarantee::overload;
    case ErrorCode::shut_down:
      return Guarantee::shutdown;
    case ErrorCode::join_failed:
      return Guarantee::membership;
    case ErrorCode::remote_error:
    case ErrorCode::not_sent:
    case ErrorCode::unknown:
    case ErrorCode::broken_promise:
    case ErrorCode::not_found:
    case ErrorCode::bad_signature:
    case ErrorCode::bad_message:
    case ErrorCode::invalid_argument:
    case ErrorCode::owner_lost:
    case ErrorCode::rref_expired:
      return Guarantee::at_most_once;
  }
  return Guarantee::none;
}

void report_diagnostics(const std::exception_ptr& error,
                        std::shared_ptr<CallDiagnostics> diagnostics) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (Error& known) {  // the one in the pointer, not a copy
    if (diagnostics->guarantee == Guarantee::none)
      diagnostics->guarantee = guarantee_of(known.code());
    detail::set_diagnostics(known, std::move(diagnostics));
  } catch (...) {
    return;
  }
}

void report_refusal(Error& error, std::string_view function, std::string_view peer, TimePoint now,
                    Guarantee guarantee) {
  auto diagnostics = std::make_shared<CallDiagnostics>();
  diagnostics->function = function;
  diagnostics->peer = peer;
  diagnostics->guarantee = guarantee == Guarantee::none ? guarantee_of(error.code()) : guarantee;
  diagnostics->called_at = now;
  diagnostics->first_called_at = now;
  diagnostics->ended_at = now;
  detail::set_diagnostics(error, std::move(diagnostics));
}

// --- calls

// By who holds the lock. `left`: the call was sent, or may have been.
std::shared_ptr<CallDiagnostics> Session::diagnostics_of(const PendingCall& call, bool left) const {
  auto diagnostics = std::make_shared<CallDiagnostics>();
  diagnostics->function = names_[call.function];
  diagnostics->called_at = call.called_at;
  diagnostics->first_called_at = call.called_at;
  diagnostics->deadline = call.deadline;
  diagnostics->left = left;
  diagnostics->events = log_.events();
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

// Tells the caller that its call has failed, with its story, by that promise; none: the error's
// own.
void Session::fail(const CallEnd& call, std::exception_ptr error,
                   std::shared_ptr<CallDiagnostics> diagnostics, Guarantee guarantee) {
  ErrorRecord record{.kind = ErrorRecord::Kind::call,
                     .at = loop_->now(),
                     .code = ErrorCode::remote_error,
                     .function = diagnostics->function,
                     .peer = peer_name()};
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    record.text = known.what();
    if (const auto* const of_ours = dynamic_cast<const Error*>(&known)) {
      record.code = of_ours->code();
    }
  } catch (...) {
    record.text = describe(error);
  }
  {
    const std::lock_guard lock(mutex_);
    made_.failed(call.function, record.code);
  }
  if (counters_ != nullptr) counters_->errors.add(std::move(record));
  diagnostics->peer = peer_name();
  diagnostics->ended_at = std::max(loop_->now(), diagnostics->called_at);
  diagnostics->guarantee = guarantee;
  report_diagnostics(error, std::move(diagnostics));
  if (call.probe != nullptr) call.probe->failed(error);
  detail::Reply reply;
  reply.error = std::move(error);
  reply.probe = call.probe;
  call.handler(reply);
  if (call.probe != nullptr) call.probe->end();
}

// --- connections

void Session::note(ConnectionEvent event) {
  const std::lock_guard lock(mutex_);
  log_.add(std::move(event));
}

void Session::note_broken(const std::string& why) {
  broke_at_ = loop_->now();
  note({.kind = ConnectionEvent::Kind::broke, .at = broke_at_, .why = why});
}

void Session::note_failed(const std::string& why) {
  note({.kind = ConnectionEvent::Kind::failed, .at = loop_->now(), .why = why});
}

void Session::note_silence() {
  if (silent_ticks_ == 1) note({.kind = ConnectionEvent::Kind::silent, .at = heard_at_});
  if (silent_ticks_ > 0) return;
  const std::lock_guard lock(mutex_);
  log_.end_silence();
}

// --- round trips

std::uint64_t Session::ping_id() const {
  return kEcho | static_cast<std::uint64_t>((loop_->now() - attached_at_).count());
}

void Session::measure(std::uint64_t pong) {
  if ((pong & kEcho) == 0) return;
  const auto now = static_cast<std::uint64_t>((loop_->now() - attached_at_).count());
  const std::uint64_t sent = pong & ~kEcho;
  if (sent > now) return;
  const Duration sample(std::max<std::uint64_t>(now - sent, 1));
  const Duration before = round_trip();
  const Duration smoothed = before == Duration::zero() ? sample : before + (sample - before) / 8;
  round_trip_.store(smoothed.count(), std::memory_order_relaxed);
}

}  // namespace batchrpc
