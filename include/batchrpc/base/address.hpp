#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "batchrpc/base/export.hpp"

namespace batchrpc {

/// Where a node listens or is reached: `tcp://host:port` (a name, an IPv4 address or an IPv6
/// address in brackets; port 0 lets the system choose when listening), `unix:///path`,
/// `unix-abstract:name` or `inproc://name`.
class BATCHRPC_EXPORT Address {
 public:
  /// Which kind of address: what stands before `://`.
  enum class Scheme : std::uint8_t { tcp, unix_path, unix_abstract, inproc };

  /// Throws InvalidArgument, with what is wrong and an example of what is right.
  [[nodiscard]] static Address parse(std::string_view text);
  /// What parse() makes of such texts, from their parts, which are not checked. `host` is a name,
  /// an IPv4 or an IPv6 address, without brackets; port 0: of the system's choice, to listen.
  [[nodiscard]] static Address tcp(std::string host, std::uint16_t port);
  /// The same of a Unix socket without a file.
  [[nodiscard]] static Address unix_abstract(std::string name);

  /// Which kind it is.
  [[nodiscard]] Scheme scheme() const noexcept { return scheme_; }
  /// The host of a tcp address, without brackets; the path or name of the others.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Of a tcp address; 0 for the others.
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
