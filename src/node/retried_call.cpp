#include "node/retried_call.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/time.hpp"
#include "batchrpc/base/error.hpp"
#include "call/function_table.hpp"
#include "call/nested_call.hpp"
#include "node/node_core.hpp"
#include "node/retries.hpp"

namespace batchrpc {
namespace {

void check(const detail::OutgoingOptions& options, const Encoder& encoder) {
  if (options.retry.attempts < 1 || options.retry.backoff < Duration::zero()) {
    throw InvalidArgument(
        "CallOptions::retry: attempts must be at least 1, and backoff must not be negative");
  }
  if (encoder.one_use()) {
    throw InvalidArgument(
        "a call that carries an RRef can be sent only once, so it cannot be retried "
        "(CallOptions::retry); call again with a new handle");
  }
  if (options.payload_target) {
    throw InvalidArgument(
        "a call that writes its result into the caller's memory (call_into) cannot be retried "
        "(CallOptions::retry)");
  }
}

}  // namespace

RetriedCall::RetriedCall(NodeCore& core, std::string_view peer, const detail::FunctionKey& function,
                         const detail::OutgoingOptions& options, Encoder& encoder)
    : core_(core.weak_from_this()),
      number_(core.retries().begin_call()),
      schedule_(options.retry, timeout_of(function, options), core.loop()->now()),
      request_(peer, function, options, encoder) {}

RetriedCall::~RetriedCall() = default;

std::shared_ptr<RetriedCall> RetriedCall::start(NodeCore& core, std::string_view peer,
                                                const detail::FunctionKey& function,
                                                detail::OutgoingOptions&& options, Encoder& encoder,
                                                detail::ReplyHandler&& handler) {
  check(options, encoder);
  auto call = std::make_shared<RetriedCall>(core, peer, function, options, encoder);
  call->handler_ = std::move(handler);
  const detail::SubmittedCall submitted{call, 0};
  call->handler_.receiver().submitted(submitted, options.cancel_when_dropped);
  auto outer = options.detached ? nullptr : NestedCall::call_around();
  if (outer) call->nested_ = std::make_unique<NestedCall>(std::move(outer));
  if (call->nested_ && !call->nested_->follow(submitted)) call->cancelled_ = true;
  call->attempt();
  return call;
}

// Once the attempt is submitted, the thread that receives its reply owns the call.
void RetriedCall::attempt() {
  const auto self = shared_from_this();
  if (cancelled_) {
    end_cancelled();
    return;
  }
  schedule_.begin_attempt();
  under_way_ = self;
  detail::ReplyHandler reply_handler(*this);
  detail::Reply refused;
  try {
    const auto core = core_.lock();
    if (!core) {
      throw ShutDown("the node was shut down before '" + request_.function() + "' was called");
    }
    request_.submit(*core, schedule_.time_for_attempt(*core->loop()), std::move(reply_handler));
  } catch (...) {
    refused.error = std::current_exception();
  }
  if (reply_handler) {
    reply_handler(refused);
  } else if (cancelled_) {  // it was cancelled while it was being submitted
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
    failures_.add(thrown, error);
    std::string why_not;
    bool pauses = false;
    if (const auto least = schedule_.least_pause(error)) {
      why_not = try_again(error.code(), *least);
      pauses = why_not.empty();
    }
    final = pauses ? nullptr : failures_.final_error(thrown, error, why_not);
  } catch (...) {  // NOLINT: it stays as it is
  }
  if (final) {
    end(final);
  } else if (cancelled_) {
    end_pause();
  }
}

// Makes the call pause before its next attempt, or returns the reason why there is none. After a
// pause has begun, another thread may own the call.
std::string RetriedCall::try_again(ErrorCode failed_by, Duration least_pause) {
  if (schedule_.is_used_up()) {
    return "that was attempt " + std::to_string(schedule_.attempts()) + " of " +
           std::to_string(schedule_.most_attempts());
  }
  const auto core = core_.lock();
  if (!core) return "the node is shut down";
  if (cancelled_) return "it was cancelled and is not retried";
  Retries& retries = core->retries();
  const Duration pause = std::max(least_pause, retries.with_jitter(schedule_.backoff()));
  const TimePoint when = after(core->loop()->now(), pause);
  if (!schedule_.is_in_time(when)) return "no time is left to try again (CallOptions::timeout)";
  if (!retries.take_from_budget()) {
    return "it is not retried: the node's retry budget (a tenth of its calls that ask for retries, "
           "plus ten saved up) is used up; " +
           std::string(failed_by == ErrorCode::overloaded
                           ? "call less often, or call again after retry_after()"
                           : "use wait_for_peer() to wait for a lost peer");
  }
  if (!retries.pause(shared_from_this(), when)) return "the node is shutting down";
  core->counters()->retries.fetch_add(1, std::memory_order_relaxed);
  return {};
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
  end_between(std::make_exception_ptr(ShutDown(
      "node " + (core ? core->name() : std::string()) + " was shut down while '" +
          request_.shown_function() + "' on " + request_.peer() + " was waiting to be retried",
      failures_.may_have_run())));
}

std::string RetriedCall::text() const { return request_.peer() + ": " + request_.shown_function(); }

void RetriedCall::end_cancelled() {
  end_between(
      std::make_exception_ptr(Cancelled("'" + request_.shown_function() + "' on " +
                                            request_.peer() + " was cancelled between two attempts",
                                        failures_.may_have_run())));
}

void RetriedCall::end_between(const std::exception_ptr& error) {
  std::optional<TimePoint> now;
  if (const auto core = core_.lock()) now = core->loop()->now();
  failures_.end_between_attempts(request_.peer(), request_.shown_function(), schedule_, now);
  end(error);
}

void RetriedCall::end(const std::exception_ptr& error) {
  failures_.report(error, schedule_);
  over_ = true;
  nested_.reset();
  detail::Reply reply;
  reply.error = error;
  std::exchange(handler_, {})(reply);
}

}  // namespace batchrpc
