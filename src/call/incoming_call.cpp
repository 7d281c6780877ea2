#include "call/incoming_call.hpp"

#include "batchrpc/base/error.hpp"

namespace batchrpc::detail {

void IncomingCall::refuse(const std::exception_ptr& error) {
  // Another thread may cancel a kept call and answer it. It does not if the call has started.
  if (const auto& state = ContextAccess::call(context())) {
    if (state->start()) state->arguments().charge.release();
  }
  fail(error);
}

void IncomingCall::refuse_late() {
  refuse(std::make_exception_ptr(
      TimedOut("the call's deadline passed before it could start; it never ran", false)));
}

RunningCall* WaitingCall::begin() && {
  note_begun();
  if (!ContextAccess::call(context())->start()) return nullptr;  // it was cancelled
  if (is_late()) {
    refuse_late();
    return nullptr;
  }
  if (permit() != nullptr) permit()->ran = true;
  return this;
}

}  // namespace batchrpc::detail
