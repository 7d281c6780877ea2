#pragma once

#include <memory>
#include <utility>

#include "batchrpc/node/call_context.hpp"
#include "batchrpc/node/call_state.hpp"
#include "batchrpc/node/remote_call.hpp"

namespace batchrpc {

/// How long a call may take that is made now, by the thread that answers another one, perhaps;
/// `usual`: where its options say nothing. Throws TimedOut or Cancelled when it is not to be made
/// at all.
[[nodiscard]] Duration timeout_of(const detail::FunctionKey& function,
                                  const detail::OutgoingOptions& options, Duration usual);

/// Has a call of this node's cancelled along with the one that the calling thread is answering.
class NestedCall final : public detail::CancelHook {
 public:
  /// Null where that cannot be cancelled, or where there is none.
  [[nodiscard]] static std::unique_ptr<NestedCall> in_current() {
    const CallContext* const context = CallContext::current();
    if (context == nullptr || !context->call()) return nullptr;
    return std::make_unique<NestedCall>(context->call());
  }
  explicit NestedCall(std::shared_ptr<detail::CallState> outer) : outer_(std::move(outer)) {}
  ~NestedCall() override { detach(); }

  /// False when the outer call was cancelled before.
  [[nodiscard]] bool follow(detail::SubmittedCall call) {
    call_ = call;
    return attach(std::move(outer_));
  }

 private:
  [[nodiscard]] Task task() noexcept override {
    return [call = call_] { call.cancel(); };
  }

  std::shared_ptr<detail::CallState> outer_;
  detail::SubmittedCall call_;
};

}  // namespace batchrpc
