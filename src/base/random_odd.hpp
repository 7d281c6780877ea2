#pragma once

#include <cstdint>

#include "base/random_bits.hpp"

namespace batchrpc {

/// A random odd multiplier for hashes, so that a peer that chooses the keys cannot predict them.
inline std::uint64_t random_odd() { return RandomBits()() | 1U; }

}  // namespace batchrpc
