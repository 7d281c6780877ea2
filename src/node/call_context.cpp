#include "batchrpc/node/call_context.hpp"

#include <algorithm>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "batchrpc/future/wait.hpp"
#include "batchrpc/node/call_state.hpp"

namespace batchrpc {

// There are no other Ambients.
const CallContext* CallContext::current() noexcept {
  return static_cast<const CallContext*>(Ambient::current());
}

const CallContext* CallContext::exchange_current(const CallContext* context) noexcept {
  return static_cast<const CallContext*>(Ambient::exchange_current(context));
}

std::shared_ptr<const detail::Ambient> CallContext::share() const {
  return call_ ? std::make_shared<const CallContext>(*this) : nullptr;
}

std::optional<Duration> CallContext::time_left() const {
  if (!deadline_) return std::nullopt;
  return std::max(Duration::zero(), *deadline_ - WaitContext::current()->now());
}

bool CallContext::cancelled() const noexcept { return call_ && call_->cancelled(); }

bool CallContext::is_under_way() const noexcept { return !call_ || call_->under_way(); }

std::stop_token CallContext::stop_token() const {
  return call_ ? call_->stop_token() : std::stop_token();
}

Future<void> CallContext::when_cancelled() const {
  if (call_) return call_->when_cancelled();
  return make_failed_future<void>(
      BrokenPromise("a call that is answered at once can not be cancelled"));
}

std::exception_ptr CallContext::over() const {
  if (cancelled()) {
    return std::make_exception_ptr(
        Cancelled("the call was cancelled before this could start; it never ran", false));
  }
  if (deadline_ && time_left() == Duration::zero()) {
    return std::make_exception_ptr(
        TimedOut("the time of the call was over before this could start; it never ran", false));
  }
  return nullptr;
}

}  // namespace batchrpc
