#include "call/nested_call.hpp"

#include <algorithm>
#include <string>

#include "batchrpc/base/error.hpp"
#include "call/function_table.hpp"

namespace batchrpc {

Duration timeout_of(const detail::FunctionKey& function, const detail::OutgoingOptions& options) {
  const auto name = [&] { return "'" + std::string(shown_name(function)) + "'"; };
  const Duration own = options.timeout;
  if (own < Duration::zero()) {
    throw TimedOut("the timeout of " + name() +
                       " had passed before it was called; it never ran (CallOptions::timeout)",
                   false);
  }
  const CallContext* const outer = options.detached ? nullptr : CallContext::current();
  if (outer == nullptr) return own;
  if (outer->cancelled()) {
    throw Cancelled(name() + " was called in a call that has been cancelled; it never ran " +
                        "(CallOptions::detached)",
                    false);
  }
  const auto left = detail::ContextAccess::is_under_way(*outer) ? outer->time_left() : std::nullopt;
  if (!left) return own;
  if (*left == Duration::zero()) {
    throw TimedOut(name() + " was called in a call whose own deadline has passed; it never ran " +
                       "(CallOptions::detached)",
                   false);
  }
  return std::min(own, *left);
}

}  // namespace batchrpc
