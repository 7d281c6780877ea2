#pragma once

#include <memory>
#include <utility>

#include "batchrpc/call/call_context.hpp"
#include "batchrpc/call/call_state.hpp"
#include "batchrpc/call/remote_call.hpp"

namespace batchrpc {

/// Returns the time-out of a call that is made now, perhaps by a thread that answers another call.
/// Throws TimedOut or Cancelled when the call must not be made.
[[nodiscard]] Duration timeout_of(const detail::FunctionKey& function,
                                  const detail::OutgoingOptions& options);

/// Cancels a call of this node when the call that the calling thread is answering is cancelled.
class NestedCall final : public detail::CancelHook {
 public:
  /// Returns the call that the calling thread is answering; null if there is none, or if it cannot
  /// be cancelled.
  [[nodiscard]] static detail::Ref<detail::CallState> call_around() noexcept {
    const CallContext* const context = CallContext::current();
    return context != nullptr ? detail::ContextAccess::call(*context) : nullptr;
  }
  explicit NestedCall(detail::Ref<detail::CallState> outer) noexcept : outer_(std::move(outer)) {}
  ~NestedCall() override { detach(); }

  /// Returns false if the outer call was cancelled already.
  [[nodiscard]] bool follow(detail::SubmittedCall call) {
    call_ = std::move(call);
    return attach(std::move(outer_));
  }

 private:
  [[nodiscard]] Task task() noexcept override {
    return [call = call_] { call.cancel(); };
  }

  detail::Ref<detail::CallState> outer_;
  detail::SubmittedCall call_;
};

}  // namespace batchrpc
