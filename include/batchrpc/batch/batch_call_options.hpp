#pragma once

#include <stop_token>

#include "batchrpc/base/executor.hpp"

namespace batchrpc {

/// How one call of this process is made; a peer's has its CallOptions.
struct BatchCallOptions {
  /// A row that has not started by then fails with TimedOut; zero: it waits for ever, or as long as
  /// the call does that the calling thread is answering.
  Duration timeout{};
  /// Takes the row back: one that has not started fails with Cancelled.
  std::stop_token stop{};
};

}  // namespace batchrpc
