#include "node/retried_call.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/time.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/base/result.hpp"
#include "batchrpc/call/call_extras.hpp"
#include "call/call_diagnostics_text.hpp"
#include "call/function_table.hpp"
#include "call/nested_call.hpp"
#include "node/node_core.hpp"
#include "node/retries.hpp"

namespace batchrpc {
namespace {

// For how long at least nothing that failed so is to be tried again; nothing: for ever.
std::optional<Duration> repeatable_after(const Error& error, bool idempotent) {
  if (error.may_have_run() && !idempotent) return std::nullopt;
  switch (error.code()) {
    case ErrorCode::not_sent:
    case ErrorCode::unknown:
    case ErrorCode::peer_lost:
      return Duration::zero();
    case ErrorCode::shut_down:  // the callee's: it may be started again
      return error.may_have_run() ? std::nullopt : std::optional(Duration::zero());
    case ErrorCode::overloaded: {
      const auto* const overloaded = dynamic_cast<const Overloaded*>(&error);
      return overloaded != nullptr ? overloaded->retry_after() : Duration::zero();
    }
    default:  // a TimedOut, too: an attempt has all the time that is left
      return std::nullopt;
  }
}

// backoff * 2^doublings
Duration growing(Duration backoff, int doublings) {
  constexpr Duration kLongest = std::chrono::hours(24 * 365);
  const double pause = std::ldexp(static_cast<double>(backoff.count()), doublings);
  return pause < static_cast<double>(kLongest.count()) ? Duration(static_cast<Duration::rep>(pause))
                                                       : kLongest;
}

void check(const detail::OutgoingOptions& options, const Encoder& encoder) {
  if (options.retry.attempts < 1 || options.retry.backoff < Duration::zero()) {
    throw InvalidArgument(
        "CallOptions::retry is out of range: attempts are 1 or more, backoff is not negative");
  }
  if (encoder.one_use()) {
    throw InvalidArgument(
        "a call that carries an RRef is sent once, and cannot be retried (CallOptions::retry); "
        "call "
        "again with a new handle");
  }
  if (options.payload_target) {
    throw InvalidArgument(
        "a call whose result goes into memory of the caller's own (call_into) cannot be retried "
        "(CallOptions::retry)");
  }
}

}  // namespace

RetriedCall::RetriedCall(NodeCore& core, std::string_view peer, const detail::FunctionKey& function,
                         const detail::OutgoingOptions& options)
    : core_(core.weak_from_this()),
      number_(core.retries().begin_call()),
      peer_(peer),
      function_(function.name),
      shown_(shown_name(function)),
      signature_(function.signature),
      hash_(function.hash),
      retry_(options.retry),
      kept_(options.kept),
      extras_(options.extras),
      timeout_(timeout_of(function, options, core.options().call_timeout)),
      called_at_(core.loop()->now()),
      deadline_(after(called_at_, timeout_)) {}

RetriedCall::~RetriedCall() = default;

std::shared_ptr<RetriedCall> RetriedCall::start(NodeCore& core, std::string_view peer,
                                                const detail::FunctionKey& function,
                                                detail::OutgoingOptions&& options, Encoder& encoder,
                                                detail::ReplyHandler&& handler) {
  check(options, encoder);
  auto call = std::make_shared<RetriedCall>(core, peer, function, options);
  call->words_ = encoder.words();
  call->payloads_ = std::move(encoder.payloads());
  call->handler_ = std::move(handler);
  const detail::SubmittedCall submitted{call, 0};
  call->handler_.receiver().submitted(submitted, options.cancel_when_dropped);
  auto outer = options.detached ? nullptr : NestedCall::call_around();
  if (outer) call->nested_ = std::make_unique<NestedCall>(std::move(outer));
  if (call->nested_ && !call->nested_->follow(submitted)) call->cancelled_ = true;
  call->attempt();
  return call;
}

// Once it is submitted the call belongs to whoever receives the reply, on any thread.
void RetriedCall::attempt() {
  const auto self = shared_from_this();
  if (cancelled_) {
    end_cancelled();
    return;
  }
  ++made_;
  under_way_ = self;
  detail::ReplyHandler reply_handler(*this);
  detail::Reply refused;
  try {
    const auto core = core_.lock();
    if (!core) throw ShutDown("the node was shut down before '" + function_ + "' was called");
    detail::OutgoingOptions options;
    options.timeout = made_ == 1                      ? timeout_
                      : deadline_ == TimePoint::max() ? Duration::max()
                                                      : deadline_ - core->loop()->now();
    // Zero would be the node's default.
    if (options.timeout == Duration::zero()) options.timeout = Duration(-1);
    if (made_ == 2 && extras_) {  // it begins now
      extras_ = std::make_shared<detail::OutgoingExtras>(*extras_);
      extras_->started = {};
    }
    options.extras = extras_;
    const detail::EncoderLease copy;
    (*copy).words() = words_;
    (*copy).payloads() = payloads_;
    core->submit(peer_, {function_, signature_, hash_, shown_}, std::move(options), *copy,
                 std::move(reply_handler));
  } catch (...) {
    refused.error = std::current_exception();
  }
  if (reply_handler) {
    reply_handler(refused);
  } else if (cancelled_) {  // while it was being submitted
    cancel_attempt();
  }
}

void RetriedCall::submitted(detail::SubmittedCall call, bool /*cancel_when_dropped*/) noexcept {
  const std::lock_guard lock(mutex_);
  submitted_ = std::move(call);
}

void RetriedCall::cancel_attempt() noexcept {
  detail::SubmittedCall attempt;
  {
    const std::lock_guard lock(mutex_);
    attempt = submitted_;
  }
  (void)attempt.cancel();
}

void RetriedCall::receive(detail::Reply& reply) noexcept {
  const auto self = std::move(under_way_);
  if (reply.error) {
    if (reply.probe != nullptr) detail::end_record(*reply.probe, reply.error);
    attempt_failed(reply.error);
  } else {
    over_ = true;
    nested_.reset();
    std::exchange(handler_, {})(reply);
  }
}

void RetriedCall::attempt_failed(const std::exception_ptr& thrown) {
  std::exception_ptr final = thrown;
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    diagnostics_ = error.diagnostics() != nullptr
                       ? std::make_shared<CallDiagnostics>(*error.diagnostics())
                       : nullptr;
    std::string why_not;
    if (const auto least = repeatable_after(error, retry_.idempotent)) {
      if (error.may_have_run()) maybe_ran_ = thrown;
      why_not = try_again(error.code(), *least);
      if (why_not.empty()) final = nullptr;
    }
    if (final) {
      final = final_error(thrown, error, why_not);
      const bool says_more = maybe_ran_ && !error.may_have_run();
      if (says_more && diagnostics_) diagnostics_->guarantee = Guarantee::at_most_once;
    }
  } catch (...) {  // NOLINT: it stays as it is
  }
  if (final) {
    end(final);
  } else if (cancelled_) {
    end_pause();
  }
}

// Has the call pause before its next attempt; or says why there is none.
std::string RetriedCall::try_again(ErrorCode failed_by, Duration least_pause) {
  if (made_ >= retry_.attempts) {
    return "that was attempt " + std::to_string(made_) + " of " + std::to_string(retry_.attempts);
  }
  const auto core = core_.lock();
  if (!core) return "the node is shut down";
  if (cancelled_) return "it was cancelled and is not tried again";
  Retries& retries = core->retries();
  const Duration pause =
      std::max(least_pause, retries.with_jitter(growing(retry_.backoff, made_ - 1)));
  const TimePoint when = after(core->loop()->now(), pause);
  if (when >= deadline_) return "no time is left to try again (CallOptions::timeout)";
  if (!retries.take_from_budget()) {
    return "it is not tried again: the node's retry budget, a tenth of its calls that ask for "
           "retries and ten saved up, is used up; " +
           std::string(failed_by == ErrorCode::overloaded
                           ? "call less often, or again after retry_after()"
                           : "wait_for_peer() waits for a peer that is away");
  }
  if (!retries.pause(shared_from_this(), when)) return "the node is shutting down";
  core->counters()->retries.fetch_add(1, std::memory_order_relaxed);
  return {};
}

// That of the last attempt. But NotSent, and may_have_run() == false, are said only when no attempt
// may have run.
std::exception_ptr RetriedCall::final_error(const std::exception_ptr& thrown, const Error& last,
                                            const std::string& note) const {
  const bool hides = maybe_ran_ && !last.may_have_run();
  if (!hides && note.empty()) return thrown;
  std::string more = note.empty() ? "" : "; " + note;
  if (hides) more += "; an earlier attempt may have run: ";
  if (hides && last.code() == ErrorCode::not_sent) {
    try {
      std::rethrow_exception(maybe_ran_);
    } catch (const Error& earlier) {
      return detail::copy_error(earlier, true, {.before = last.what() + more});
    }
  }
  if (hides) more += describe(maybe_ran_);
  return detail::copy_error(last, hides || last.may_have_run(), {.behind = more});
}

bool RetriedCall::cancel_call(std::uint64_t /*id*/) noexcept {
  const auto core = core_.lock();
  if (over_ || (core && core->is_forked_copy())) return false;
  const auto self = shared_from_this();
  if (!cancelled_.exchange(true)) {
    end_pause();
    cancel_attempt();
  }
  return true;
}

// Ends the call if it pauses.
void RetriedCall::end_pause() {
  const auto core = core_.lock();
  if (core && core->retries().take_paused(number_)) end_cancelled();
}

void RetriedCall::shut_down() {
  const auto core = core_.lock();
  end_between(std::make_exception_ptr(ShutDown("node " + (core ? core->name() : std::string()) +
                                                   " was shut down while '" + shown_ + "' on " +
                                                   peer_ + " was to be tried again",
                                               maybe_ran_ != nullptr)));
}

std::string RetriedCall::text() const { return peer_ + ": " + shown_; }

void RetriedCall::end_cancelled() {
  end_between(std::make_exception_ptr(
      Cancelled("'" + shown_ + "' on " + peer_ + " was cancelled between two attempts",
                maybe_ran_ != nullptr)));
}

// No attempt is under way: the story is that of the last one, which goes on until now.
void RetriedCall::end_between(const std::exception_ptr& error) {
  if (!diagnostics_) {  // there was none
    diagnostics_ = std::make_shared<CallDiagnostics>();
    diagnostics_->function = shown_;
    diagnostics_->peer = peer_;
    diagnostics_->called_at = diagnostics_->ended_at = called_at_;
  }
  if (const auto core = core_.lock()) diagnostics_->ended_at = core->loop()->now();
  diagnostics_->guarantee = Guarantee::none;  // that of the error
  end(error);
}

void RetriedCall::end(const std::exception_ptr& error) {
  if (diagnostics_) {
    diagnostics_->attempt = std::max(made_, 1);
    diagnostics_->attempts = retry_.attempts;
    diagnostics_->first_called_at = called_at_;
    report_diagnostics(error, std::move(diagnostics_));
  }
  over_ = true;
  nested_.reset();
  detail::Reply reply;
  reply.error = error;
  std::exchange(handler_, {})(reply);
}

}  // namespace batchrpc
