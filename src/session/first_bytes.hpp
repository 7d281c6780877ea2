#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace batchrpc {

/// The number of bytes that first_bytes_text() shows.
inline constexpr std::size_t kFirstBytes = 32;

/// Describes the bytes of a peer that broke the protocol, for the log. Names what they look like
/// (an HTTP request, a TLS handshake, SSH) if that is known. Shows the first bytes as numbers and
/// as text, such as "it looks like an HTTP request and begins with 47 45 54 20 2f 20 (GET / )".
[[nodiscard]] std::string first_bytes_text(std::span<const std::byte> bytes);

}  // namespace batchrpc
