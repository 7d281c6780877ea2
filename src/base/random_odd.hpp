#pragma once

#include <cstdint>
#include <random>

namespace batchrpc {

/// Multiplies into a hash that a peer which chooses the keys cannot foresee.
inline std::uint64_t random_odd() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random() | 1U;
}

}  // namespace batchrpc
