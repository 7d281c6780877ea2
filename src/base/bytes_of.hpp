#pragma once

#include <cstdint>
#include <span>

#include "batchrpc/base/bytes.hpp"

namespace batchrpc {

/// Returns the bytes of all payloads together.
[[nodiscard]] inline std::uint64_t bytes_of(std::span<const Bytes> payloads) noexcept {
  std::uint64_t bytes = 0;
  for (const Bytes& payload : payloads)
    bytes += payload.size();
  return bytes;
}

}  // namespace batchrpc
