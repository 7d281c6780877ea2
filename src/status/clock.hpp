#pragma once

#include <chrono>

namespace batchrpc::status {

using Clock = std::chrono::steady_clock;

/// Real time, whatever clock the node uses: clients and sockets need it.
inline Clock::time_point now() noexcept {
  return Clock::now();  // NOLINT(layers)
}

}  // namespace batchrpc::status
