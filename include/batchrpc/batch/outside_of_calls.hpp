#pragma once

#include "batchrpc/call/call_context.hpp"

namespace batchrpc::detail {

/// While it exists, its thread is not part of any remote call. Handlers and callbacks of a batch's
/// rows do not belong to the call whose thread happens to run them.
class OutsideOfCalls {
 public:
  OutsideOfCalls() = default;
  OutsideOfCalls(const OutsideOfCalls&) = delete;
  OutsideOfCalls& operator=(const OutsideOfCalls&) = delete;
  ~OutsideOfCalls() { ContextAccess::exchange_current(call_); }

 private:
  const CallContext* const call_ = ContextAccess::exchange_current(nullptr);
};

}  // namespace batchrpc::detail
