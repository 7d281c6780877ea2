#pragma once

#include <cstdint>
#include <random>

namespace batchrpc {

/// A random odd multiplier for hashes, so that a peer that chooses the keys cannot predict them.
inline std::uint64_t random_odd() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random() | 1U;
}

}  // namespace batchrpc
