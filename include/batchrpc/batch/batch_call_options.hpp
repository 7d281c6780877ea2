#pragma once

#include <stop_token>

#include "batchrpc/base/executor.hpp"

namespace batchrpc {

/// Options of one call made in this process. A peer's call has its CallOptions instead.
struct BatchCallOptions {
  /// A row that has not started after this time fails with TimedOut. Zero: no timeout of its own;
  /// inside a handler, the deadline of the call that the thread is answering still applies.
  Duration timeout{};
  /// Cancels the row: if it has not started, it fails with Cancelled.
  std::stop_token stop{};
};

}  // namespace batchrpc
