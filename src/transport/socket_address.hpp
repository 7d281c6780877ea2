#pragma once

#include <sys/socket.h>

#include <string>
#include <system_error>

#include "batchrpc/base/address.hpp"
#include "batchrpc/transport/tcp_address.hpp"

namespace batchrpc::detail {

/// A socket address as the system has it.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  [[nodiscard]] const sockaddr* get() const noexcept {
    return reinterpret_cast<const sockaddr*>(&storage);
  }
  [[nodiscard]] sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&storage); }
  [[nodiscard]] int family() const noexcept { return storage.ss_family; }
};

/// Throws InvalidArgument unless the address is a unix or unix-abstract one that fits into a socket
/// address.
void check_unix(const Address& address);

/// Converts a unix or unix-abstract address, which it checks.
[[nodiscard]] SocketAddress unix_address(const Address& address);

/// Converts a TCP address with a numeric host. Returns false if the host is a name.
[[nodiscard]] bool numeric_address(const TcpAddress& address, SocketAddress& result);

/// Converts back. A Unix socket without a name gives the address `unix-abstract:?`.
[[nodiscard]] Address to_address(const SocketAddress& address);

/// Returns a socket's own address, or its peer's.
[[nodiscard]] SocketAddress own_address(int fd) noexcept;
[[nodiscard]] SocketAddress peer_address(int fd) noexcept;

/// Whether both ends surely are on this machine: they have one IP address. Others that are, those
/// of containers say, are not recognised.
[[nodiscard]] bool has_one_address(const SocketAddress& own, const SocketAddress& peer) noexcept;
/// Whether it is an IP address that only this machine has, such as 127.0.0.1.
[[nodiscard]] bool is_loopback(const SocketAddress& address) noexcept;

/// Makes a non-blocking socket that child processes do not inherit.
[[nodiscard]] int make_socket(int family, std::error_code& error) noexcept;

/// Returns the error for an errno. A missing socket file also equals std::errc::connection_refused,
/// since nobody listens.
[[nodiscard]] std::error_code connect_error(int error) noexcept;

}  // namespace batchrpc::detail
