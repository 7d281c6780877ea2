#pragma once

#include <cstdint>
#include <string_view>

#include "batchrpc/base/export.hpp"

namespace batchrpc {

/// 128 bits by which a node proves to a peer that it is the node that the peer knows. Zero: none.
struct Secret {
  std::uint64_t first = 0;
  std::uint64_t second = 0;

  /// Compares in constant time, so that the time of a refusal does not reveal how much was right.
  friend bool operator==(const Secret& a, const Secret& b) noexcept {
    return ((a.first ^ b.first) | (a.second ^ b.second)) == 0;
  }
};

/// Returns a secret for `purpose` that only a holder of `key` can compute. Uses SipHash-2-4 with
/// 128 bits of output (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012).
[[nodiscard]] BATCHRPC_EXPORT Secret derive_secret(const Secret& key,
                                                   std::string_view purpose) noexcept;

}  // namespace batchrpc
