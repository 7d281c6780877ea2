#pragma once

#include <utility>

#include "batchrpc/call/call_context.hpp"
#include "batchrpc/call/remote_call.hpp"
#include "session/flush_scope.hpp"

namespace batchrpc {

/// Hides the call that a thread is answering while the thread waits. Work that runs meanwhile is
/// not part of that call, and sends its own output.
class SetAside {
 public:
  SetAside() : outer_(std::exchange(innermost(), this)) {}
  ~SetAside() {
    innermost() = outer_;
    detail::ContextAccess::exchange_current(call_);
  }
  SetAside(const SetAside&) = delete;
  SetAside& operator=(const SetAside&) = delete;

  /// Whether the calling thread is answering a call, perhaps one that is set aside.
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
  const CallContext* const call_ = detail::ContextAccess::exchange_current(nullptr);
  const detail::CurrentNode no_node_;
  const FlushScope::Hidden output_;
};

}  // namespace batchrpc
