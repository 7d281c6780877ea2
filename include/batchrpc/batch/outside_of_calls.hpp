#pragma once

#include "batchrpc/call/call_context.hpp"

namespace batchrpc::detail {

/// While it lives, its thread is in no remote call, whosever call it runs in: handlers and
/// callbacks of a batch's rows are no part of the call that happens to run them.
class OutsideOfCalls {
 public:
  OutsideOfCalls() = default;
  OutsideOfCalls(const OutsideOfCalls&) = delete;
  OutsideOfCalls& operator=(const OutsideOfCalls&) = delete;
  ~OutsideOfCalls() { CallContext::exchange_current(call_); }

 private:
  const CallContext* const call_ = CallContext::exchange_current(nullptr);
};

}  // namespace batchrpc::detail
