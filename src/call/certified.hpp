#pragma once

#include <string_view>

namespace batchrpc {

/// Whether a certificate proves this identity of a peer (PeerIdentity::identity).
[[nodiscard]] inline bool is_certified(std::string_view identity) noexcept {
  return identity.starts_with("spiffe:") || identity.starts_with("dns:");
}

}  // namespace batchrpc
