#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "batchrpc/base/address.hpp"
#include "batchrpc/base/export.hpp"

namespace batchrpc {

/// The parts of an address `tcp://host:port`.
struct BATCHRPC_EXPORT TcpAddress {
  std::string host{};      ///< a name, an IPv4 or an IPv6 address, without brackets
  std::uint16_t port = 0;  ///< 0 for listening: the system chooses one

  /// Both throw InvalidArgument, with the mistake and a correct example. @{
  [[nodiscard]] static TcpAddress of(const Address& address);
  [[nodiscard]] static TcpAddress parse(std::string_view text) { return of(Address::parse(text)); }
  /// @}

  /// Adds brackets to an IPv6 address. The host is not checked. @{
  [[nodiscard]] std::string to_string() const;
  [[nodiscard]] Address address() const { return Address::parse(to_string()); }
  /// @}

  /// Returns whether the host is `localhost` or a loopback address of this machine.
  [[nodiscard]] bool is_loopback() const noexcept;

  friend bool operator==(const TcpAddress&, const TcpAddress&) = default;
};

}  // namespace batchrpc
