#pragma once

#include <chrono>

namespace batchrpc::status {

using Clock = std::chrono::steady_clock;

/// People and sockets: real time, whatever clock the node is on.
inline Clock::time_point now() noexcept {
  return Clock::now();  // NOLINT(layers)
}

}  // namespace batchrpc::status
