#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "batchrpc/base/export.hpp"

namespace batchrpc {

/// The address where a node listens or is reached: `tcp://host:port`, `unix:///path`,
/// `unix-abstract:name` or `inproc://name`. The host is a name, an IPv4 address or an IPv6 address
/// in brackets. A node that listens on port 0 gets a port that the system chooses.
class BATCHRPC_EXPORT Address {
 public:
  /// The kind of address, from the part before `://`.
  enum class Scheme : std::uint8_t { tcp, unix_path, unix_abstract, inproc };

  /// Parses an address. Throws InvalidArgument, which says what is wrong and gives a valid example.
  [[nodiscard]] static Address parse(std::string_view text);
  /// Makes a tcp address from its parts, which are not checked. `host` is a name, an IPv4 or an
  /// IPv6 address, without brackets. With port 0 the system chooses a port to listen on.
  [[nodiscard]] static Address tcp(std::string host, std::uint16_t port);
  /// Makes the address of a Unix socket that has no file. `name` is not checked.
  [[nodiscard]] static Address unix_abstract(std::string name);

  /// The kind of this address.
  [[nodiscard]] Scheme scheme() const noexcept { return scheme_; }
  /// The host of a tcp address, without brackets; the path or name of the others.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// The port of a tcp address; 0 for the others.
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  /// Whether a tcp address names this machine's loopback; true for the other schemes.
  [[nodiscard]] bool is_loopback() const noexcept;
  /// The text that parse() reads.
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const Address&, const Address&) = default;

 private:
  Address(Scheme scheme, std::string name, std::uint16_t port)
      : scheme_(scheme), name_(std::move(name)), port_(port) {}

  Scheme scheme_;
  std::string name_;
  std::uint16_t port_;
};

}  // namespace batchrpc
