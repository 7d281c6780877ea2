#include "batchrpc/call/call_context.hpp"

#include <algorithm>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "batchrpc/call/call_extras.hpp"
#include "batchrpc/call/call_recording.hpp"
#include "batchrpc/call/call_state.hpp"
#include "batchrpc/call/remote_call.hpp"
#include "batchrpc/future/wait.hpp"
#include "call/local_node.hpp"

namespace batchrpc {

namespace {

// All Ambients are CallContexts.
const CallContext* ambient() noexcept {
  return static_cast<const CallContext*>(detail::Ambient::current());
}

}  // namespace

const CallContext* CallContext::current() noexcept {
  const CallContext* const context = ambient();
  const bool of_call =
      context != nullptr && (context->lender_ != nullptr || context->owner_ != nullptr);
  return of_call ? context : nullptr;
}

const detail::CallExtras* detail::ContextAccess::current_extras() noexcept {
  const CallContext* const context = ambient();
  return context != nullptr ? context->extras_.get() : nullptr;
}

detail::OperatorSink* CallContext::operators() const noexcept {
  detail::CallRecording* const recording = extras_ ? extras_->recording.get() : nullptr;
  return recording != nullptr && recording->wants_operators() ? recording : nullptr;
}

// A call that is answered where it is read has no state, but its thread knows the node.
std::shared_ptr<const Node> CallContext::node() const {
  std::shared_ptr<LocalNode> local;
  if (call_) {
    local = call_->node();
  } else if (this == ambient()) {
    local = detail::CurrentNode::get();
  }
  return local ? local->handle() : nullptr;
}

TraceContext CallContext::trace() const noexcept {
  return extras_ ? extras_->trace : TraceContext();
}

std::span<const std::pair<std::string, std::string>> CallContext::metadata() const noexcept {
  if (!extras_) return {};
  return extras_->metadata;
}

std::optional<std::string_view> CallContext::metadata(std::string_view key) const noexcept {
  for (const auto& [name, value] : metadata()) {
    if (name == key) return value;
  }
  return std::nullopt;
}

const CallContext* detail::ContextAccess::exchange_current(const CallContext* context) noexcept {
  return static_cast<const CallContext*>(Ambient::exchange_current(context));
}

std::shared_ptr<const detail::Ambient> CallContext::share() const {
  if (call_) return std::make_shared<const CallContext>(*this);
  if (!extras_) return nullptr;
  // The call is answered at once: later work is part of its trace, but not of the call.
  auto rest = std::make_shared<CallContext>();
  detail::ContextAccess::set_extras(*rest, extras_);
  return rest;
}

std::optional<Duration> CallContext::time_left() const {
  if (deadline_ == kNoDeadline) return std::nullopt;
  return std::max(Duration::zero(), deadline_ - WaitContext::current()->now());
}

bool CallContext::cancelled() const noexcept { return call_ && call_->cancelled(); }

bool detail::ContextAccess::is_under_way(const CallContext& context) noexcept {
  return !context.call_ || context.call_->under_way();
}

std::stop_token CallContext::stop_token() const {
  return call_ ? call_->stop_token() : std::stop_token();
}

Future<void> CallContext::when_cancelled() const {
  if (call_) return call_->when_cancelled();
  return make_failed_future<void>(
      BrokenPromise("a call that is answered at once cannot be cancelled"));
}

std::exception_ptr detail::ContextAccess::over(const CallContext& context) {
  if (context.cancelled()) {
    return std::make_exception_ptr(
        Cancelled("the call was cancelled before this could start; it never ran", false));
  }
  if (context.time_left() == Duration::zero()) {
    return std::make_exception_ptr(
        TimedOut("the call's deadline passed before this could start; it never ran", false));
  }
  return nullptr;
}

}  // namespace batchrpc
