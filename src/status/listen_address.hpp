#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace batchrpc::status {

/// The address that a status page listens on.
struct ListenAddress {
  std::string host{};  ///< a name or an address, without brackets
  std::uint16_t port = 0;

  /// Reads "host:port", "[::1]:port" or ":port", which is on loopback. Throws InvalidArgument.
  [[nodiscard]] static ListenAddress parse(std::string_view text);
  /// The text that parse() reads.
  [[nodiscard]] std::string to_string() const;
};

/// Whether a request's Host header names the loopback address that the page listens on: localhost,
/// 127.0.0.1, [::1] or `host`, with any port or none. It refuses names that the owner of another
/// site has pointed at this machine (DNS rebinding).
[[nodiscard]] bool is_own_host(std::string_view header, std::string_view host) noexcept;

}  // namespace batchrpc::status
