#pragma once

#include <memory>
#include <utility>

#include "batchrpc/call/exposed.hpp"
#include "batchrpc/call/remote_call.hpp"
#include "call/incoming_call.hpp"

namespace batchrpc {

/// A call that waits to run, with its function and the node that exposes it.
struct DispatchedCall {
  std::shared_ptr<LocalNode> node;
  detail::WaitingCall call;
  std::shared_ptr<detail::ExposedFunction> function;

  /// Runs the function, unless the call was cancelled or its time is over.
  void run() {
    const detail::CurrentNode current(node);
    if (detail::RunningCall* const running = std::move(call).begin()) function->run(*running);
  }
};

}  // namespace batchrpc
