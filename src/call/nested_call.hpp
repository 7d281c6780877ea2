#pragma once

#include <memory>
#include <utility>

#include "batchrpc/call/call_context.hpp"
#include "batchrpc/call/call_state.hpp"
#include "batchrpc/call/remote_call.hpp"

namespace batchrpc {

/// How long a call may take that is made now, by the thread that answers another one, perhaps;
/// `usual`: where its options say nothing. Throws TimedOut or Cancelled when it is not to be made
/// at all.
[[nodiscard]] Duration timeout_of(const detail::FunctionKey& function,
                                  const detail::OutgoingOptions& options, Duration usual);

/// Has a call of this node's cancelled along with the one that the calling thread is answering.
class NestedCall final : public detail::CancelHook {
 public:
  /// The one that the calling thread answers; null where that cannot be cancelled, or where there
  /// is none.
  [[nodiscard]] static detail::Ref<detail::CallState> call_around() noexcept {
    const CallContext* const context = CallContext::current();
    return context != nullptr ? context->call() : nullptr;
  }
  explicit NestedCall(detail::Ref<detail::CallState> outer) noexcept : outer_(std::move(outer)) {}
  ~NestedCall() override { detach(); }

  /// False when the outer call was cancelled before.
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
