#include "batchrpc/node/call_context.hpp"

#include <algorithm>
#include <utility>

#include "batchrpc/future/wait.hpp"

namespace batchrpc {
namespace {

const CallContext*& this_threads() noexcept {
  thread_local const CallContext* context = nullptr;
  return context;
}

}  // namespace

const CallContext* CallContext::current() noexcept { return this_threads(); }

const CallContext* CallContext::exchange_current(const CallContext* context) noexcept {
  return std::exchange(this_threads(), context);
}

std::optional<Duration> CallContext::time_left() const {
  if (!deadline_) return std::nullopt;
  return std::max(Duration::zero(), *deadline_ - WaitContext::current()->now());
}

}  // namespace batchrpc
