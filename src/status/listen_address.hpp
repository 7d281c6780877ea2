#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace batchrpc::status {

/// Where a status page is to be listened at.
struct ListenAddress {
  std::string host{};  ///< a name or an address, without brackets
  std::uint16_t port = 0;

  /// Of "host:port", "[::1]:port" or ":port", which is on loopback. Throws InvalidArgument.
  [[nodiscard]] static ListenAddress parse(std::string_view text);
  /// The text that parse() reads.
  [[nodiscard]] std::string to_string() const;
};

/// Whether a request's Host header names what is listened at on loopback, rather than a name that
/// another site's owner has let point there (DNS rebinding): localhost, 127.0.0.1, [::1] or `host`,
/// with any port or none.
[[nodiscard]] bool is_own_host(std::string_view header, std::string_view host) noexcept;

}  // namespace batchrpc::status
