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

/// Throws InvalidArgument unless it is a unix or unix-abstract address that fits a socket's.
void check_unix(const Address& address);

/// Of a unix or unix-abstract address, which it checks.
[[nodiscard]] SocketAddress unix_address(const Address& address);

/// Of a TCP address that is written in numbers; false when it is a name.
[[nodiscard]] bool numeric_address(const TcpAddress& address, SocketAddress& result);

/// Back again; a Unix socket without a name gives the address `unix-abstract:?`.
[[nodiscard]] Address to_address(const SocketAddress& address);

/// A socket's own address, or its peer's.
[[nodiscard]] SocketAddress own_address(int fd) noexcept;
[[nodiscard]] SocketAddress peer_address(int fd) noexcept;

/// A socket that neither blocks nor is inherited.
[[nodiscard]] int make_socket(int family, std::error_code& error) noexcept;

/// errno; a socket file that is not there equals std::errc::connection_refused too: nobody listens.
[[nodiscard]] std::error_code connect_error(int error) noexcept;

}  // namespace batchrpc::detail
