#pragma once

#include "batchrpc/node/call_context.hpp"
#include "batchrpc/node/remote_call.hpp"
#include "node/output_scope.hpp"

namespace batchrpc {

/// While a thread waits: what it runs meanwhile is not part of the call that it serves, and sends
/// for itself.
class SetAside {
 public:
  SetAside() = default;
  ~SetAside() { CallContext::exchange_current(call_); }
  SetAside(const SetAside&) = delete;
  SetAside& operator=(const SetAside&) = delete;

 private:
  const CallContext* const call_ = CallContext::exchange_current(nullptr);
  const detail::CurrentNode no_node_;
  const OutputScope::Hidden output_;
};

}  // namespace batchrpc
