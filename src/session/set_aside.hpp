#pragma once

#include <utility>

#include "batchrpc/call/call_context.hpp"
#include "batchrpc/call/remote_call.hpp"
#include "session/flush_scope.hpp"

namespace batchrpc {

/// While a thread waits: what it runs meanwhile is not part of the call that it serves, and sends
/// for itself.
class SetAside {
 public:
  SetAside() : outer_(std::exchange(innermost(), this)) {}
  ~SetAside() {
    innermost() = outer_;
    CallContext::exchange_current(call_);
  }
  SetAside(const SetAside&) = delete;
  SetAside& operator=(const SetAside&) = delete;

  /// Whether the calling thread answers a call, also one below what it does now.
  [[nodiscard]] static bool is_in_handler() noexcept {
    if (CallContext::current() != nullptr) return true;
    const SetAside* aside = innermost();
    while (aside != nullptr && aside->call_ == nullptr)
      aside = aside->outer_;
    return aside != nullptr;
  }

 private:
  static SetAside*& innermost() noexcept {
    thread_local SetAside* aside = nullptr;
    return aside;
  }

  SetAside* const outer_;
  const CallContext* const call_ = CallContext::exchange_current(nullptr);
  const detail::CurrentNode no_node_;
  const FlushScope::Hidden output_;
};

}  // namespace batchrpc
