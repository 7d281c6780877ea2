#pragma once

#include "base/random_bits.hpp"
#include "base/secret.hpp"

namespace batchrpc {

/// Draws a secret from `random`.
[[nodiscard]] inline Secret random_secret(RandomBits& random) {
  Secret drawn;
  drawn.first = random();
  drawn.second = random();
  return drawn;
}

}  // namespace batchrpc
