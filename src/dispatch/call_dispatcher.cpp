#include "dispatch/call_dispatcher.hpp"

#include <utility>

#include "batchrpc/base/error.hpp"

namespace batchrpc {
namespace {

std::shared_ptr<AdmissionQueue> queue_for(const CallDispatcher::Environment& environment) {
  if (!AdmissionQueue::limits_anything(environment.limits)) return nullptr;
  return std::make_shared<AdmissionQueue>(environment.limits, environment.loop, environment.workers,
                                          environment.log, environment.node);
}

}  // namespace

CallDispatcher::CallDispatcher(Environment environment)
    : environment_(std::move(environment)),
      parked_(std::make_shared<ParkedCalls>(environment_.loop, environment_.loop_tasks,
                                            environment_.functions)),
      queue_(queue_for(environment_)),
      exclusive_(std::make_shared<ExclusiveCalls>(environment_.loop_tasks, environment_.workers,
                                                  queue_)) {}

CalledFunction CallDispatcher::define(std::string name, std::string signature) {
  const detail::FunctionKind kind = environment_.functions.kind_of(name);
  const bool is_ordered = begins_with(signature, kind.own_parameter);
  std::string shown = environment_.functions.shown(name);
  const bool of_program = !is_of_library(name);
  return {.name = std::move(name),
          .signature = std::move(signature),
          .shown = std::move(shown),
          .of_program = of_program,
          .ordering_key = is_ordered ? kind.ordering_key : nullptr};
}

// Throws NotFound or BadSignature.
std::shared_ptr<detail::ExposedFunction> CallDispatcher::resolve(CalledFunction& called) const {
  auto function = called.exposed.lock();
  if (!function || function->taken_back) {  // calls in flight keep it alive
    function = environment_.functions.resolve(called.name, called.signature, environment_.node,
                                              environment_.loop->now());
    called.exposed = function;
  }
  return function;
}

// The signature of the call does not matter.
FunctionCounters* CallDispatcher::counters_of(const CalledFunction& called) {
  const auto exposed = environment_.functions.find(called.name);
  return exposed && exposed->counters != nullptr ? exposed->counters
                                                 : &environment_.counters.unknown();
}

detail::ReceivePlan CallDispatcher::announce(CalledFunction& called, Decoder& arguments,
                                             const std::shared_ptr<detail::TransferGate>& gate) {
  if (called.of_program && environment_.refusal()) return {};
  const auto function = resolve(called);
  if (!function->options.allow.allows(CallContext::current()->caller())) return {};
  return function->announce(arguments, gate);
}

void CallDispatcher::take(CalledFunction& called, detail::ArrivedCall&& call,
                          const CallArrival& arrival) {
  admit(called, call, arrival);
}

// `call` is an ArrivedCall, or a WaitingCall that was parked.
template <class Call>
void CallDispatcher::admit(CalledFunction& called, Call& call, const CallArrival& arrival) {
  const std::exception_ptr refusal = called.of_program ? environment_.refusal() : nullptr;
  std::shared_ptr<detail::ExposedFunction> function;
  try {
    function = resolve(called);
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    // Nodes that start together call each other before all of them have exposed what they have.
    if (code_of(error) == ErrorCode::not_found && !environment_.refusal() &&
        !environment_.functions.is_used_otherwise(called.name)) {
      park(called, std::move(call).keep(), arrival, error);
    } else {
      reject(called, call, arrival, error);
    }
    return;
  }
  if (function->counters != nullptr) {
    call.count_by(*function->counters, arrival.at, arrival.bytes);
  }
  if (refusal) return call.refuse(refusal);
  if (!function->options.allow.is_everyone()) [[unlikely]] {
    if (const std::exception_ptr denied = denial(*function, call)) return call.refuse(denied);
  }
  const bool limited = queue_ && called.of_program && !function->options.short_handler;
  if (limited) {
    if (const std::exception_ptr error = queue_->accept(function->name, call)) {
      return call.refuse(error);
    }
  }
  run(std::move(function), call, arrival.node, limited);
}

// Returns the error for a caller that may not call the function; null if it may.
std::exception_ptr CallDispatcher::denial(const detail::ExposedFunction& function,
                                          const detail::IncomingCall& call) const {
  const PeerIdentity& caller = call.context().caller();
  if (function.options.allow.allows(caller)) return nullptr;
  const std::string line = environment_.node + " does not let " + caller.name + " call '" +
                           function.shown + "' (ExposeOptions::allow)";
  environment_.log_limits.refused_calls.write(environment_.log, LogLevel::warning,
                                              environment_.loop->now(), line);
  return std::make_exception_ptr(PermissionDenied(line));
}

// `limited` says that the call has a place in the queue.
template <class Call>
void CallDispatcher::run(std::shared_ptr<detail::ExposedFunction> function, Call& call,
                         const std::shared_ptr<LocalNode>& node, bool limited) {
  if (const auto& exclusive = function->options.exclusive) {
    auto lock = exclusive->try_lock();
    if (!lock) {
      exclusive_->add({node, std::move(call).keep(function), std::move(function)});
      return;
    }
    call.hold(*std::move(lock));
  }
  if (function->options.short_handler) {
    const detail::CurrentNode current(node);
    if (detail::RunningCall* const running = std::move(call).begin()) function->run(*running);
    return;
  }
  if (limited) {
    queue_->run({node, std::move(call).keep(function), std::move(function)});
    return;
  }
  environment_.workers->post(
      [dispatched = DispatchedCall{node, std::move(call).keep(function),
                                   std::move(function)}]() mutable { dispatched.run(); });
}

// Keeps a call whose function was not found until that is exposed. `error` says that it was not
// found.
void CallDispatcher::park(CalledFunction& called, detail::WaitingCall call,
                          const CallArrival& arrival, const std::exception_ptr& error) {
  // The node owns this object, and the call that is parked keeps the node and `called` alive.
  auto run_again = [this, node = arrival.node, bytes = arrival.bytes,
                    &again = called](detail::WaitingCall parked) {
    const auto now = environment_.counters.unknown().stopwatch().ticks();
    admit(again, parked, {.node = node, .at = now, .bytes = bytes});
  };
  const std::string caller = call.context().caller().name;
  if (!parked_->park(called.name, call, std::move(run_again)))
    return reject(called, call, arrival, error);
  environment_.log_limits.parked_calls.write(
      environment_.log, LogLevel::info, environment_.loop->now(),
      "a call from " + caller +
          " waits for its function (NodeOptions::expose_within): " + describe(error));
}

// Refuses a call whose function was not found; `error` has the reason.
void CallDispatcher::reject(const CalledFunction& called, detail::IncomingCall& call,
                            const CallArrival& arrival, const std::exception_ptr& error) {
  call.count_by(*counters_of(called), arrival.at, arrival.bytes);
  if (const std::exception_ptr ending = environment_.refusal()) return call.refuse(ending);
  if (!call.wants_reply()) {
    environment_.log_limits.dropped_notifications.write(
        environment_.log, LogLevel::warning, environment_.loop->now(),
        "a notification from " + call.context().caller().name + " was dropped: " + describe(error));
  }
  call.refuse(error);
}

void CallDispatcher::close(const std::exception_ptr& error) {
  exclusive_->close(error);
  if (queue_) queue_->close(error);
}

std::optional<QueueMetrics> CallDispatcher::queue_metrics() const {
  if (!queue_) return std::nullopt;
  return queue_->metrics();
}

}  // namespace batchrpc
