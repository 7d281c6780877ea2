#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace batchrpc {

/// How many bytes first_bytes_text() shows.
inline constexpr std::size_t kFirstBytes = 32;

/// What somebody sent who broke the protocol, for the log: what it looks like (an HTTP request, a
/// TLS handshake, SSH) if that is known, and its first bytes, as numbers and as text. Such as "it
/// looks like an HTTP request and begins with 47 45 54 20 2f 20 (GET / )".
[[nodiscard]] std::string first_bytes_text(std::span<const std::byte> bytes);

}  // namespace batchrpc
