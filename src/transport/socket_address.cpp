#include "transport/socket_address.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace batchrpc::detail {

void check_unix(const Address& address) {
  constexpr std::size_t kMaxName = sizeof(sockaddr_un::sun_path) - 1;
  const std::string& text = address.to_string();
  if (address.scheme() == "unix-abstract") {
    if (text.starts_with("unix-abstract://")) {
      address.refuse("the name must not begin with slashes; write unix-abstract:name");
    }
  } else if (address.scheme() != "unix") {
    address.refuse(
        "it is not the address of a Unix socket; write unix:///path or unix-abstract:name");
  } else if (!text.starts_with("unix:///")) {
    address.refuse("the path must be absolute, with three slashes in all: unix:///tmp/socket");
  }
  if (address.name().size() > kMaxName) {
    address.refuse("the name is longer than " + std::to_string(kMaxName) + " bytes");
  }
  if (address.name().find('\0') != std::string::npos) {
    address.refuse("the name contains a zero byte");
  }
}

SocketAddress unix_address(const Address& address) {
  check_unix(address);
  SocketAddress result;
  auto& un = reinterpret_cast<sockaddr_un&>(result.storage);
  un.sun_family = AF_UNIX;
  const bool abstract = address.scheme() == "unix-abstract";
  const std::string& name = address.name();
  std::memcpy(un.sun_path + (abstract ? 1 : 0), name.data(), name.size());
  // The size determines the length of an abstract name; a path ends with a zero.
  result.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + 1);
  return result;
}

bool numeric_address(const TcpAddress& address, SocketAddress& result) {
  auto& v4 = reinterpret_cast<sockaddr_in&>(result.storage);
  if (::inet_pton(AF_INET, address.host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(address.port);
    result.size = sizeof v4;
    return true;
  }
  auto& v6 = reinterpret_cast<sockaddr_in6&>(result.storage);
  std::string host = address.host;
  unsigned scope = 0;
  if (const auto percent = host.find('%'); percent != std::string::npos) {
    scope = ::if_nametoindex(host.c_str() + percent + 1);
    if (scope == 0) return false;
    host.resize(percent);
  }
  if (::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(address.port);
    v6.sin6_scope_id = scope;
    result.size = sizeof v6;
    return true;
  }
  return false;
}

Address to_address(const SocketAddress& address) {
  char text[INET6_ADDRSTRLEN] = "?";
  switch (address.family()) {
    case AF_INET: {
      const auto& v4 = reinterpret_cast<const sockaddr_in&>(address.storage);
      ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
      return TcpAddress{.host = text, .port = ntohs(v4.sin_port)}.address();
    }
    case AF_INET6: {
      const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address.storage);
      if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
        ::inet_ntop(AF_INET, v6.sin6_addr.s6_addr + 12, text, sizeof text);
        return TcpAddress{.host = text, .port = ntohs(v6.sin6_port)}.address();
      }
      ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
      std::string host = text;
      char interface[IF_NAMESIZE];
      if (v6.sin6_scope_id != 0 && ::if_indextoname(v6.sin6_scope_id, interface) != nullptr) {
        host += '%';
        host += interface;
      }
      return TcpAddress{.host = host, .port = ntohs(v6.sin6_port)}.address();
    }
    default:
      break;
  }
  const auto& un = reinterpret_cast<const sockaddr_un&>(address.storage);
  if (address.size <= offsetof(sockaddr_un, sun_path) + 1) return Address::parse("unix-abstract:?");
  const std::size_t length = address.size - offsetof(sockaddr_un, sun_path) - 1;
  if (un.sun_path[0] == '\0') {
    return Address::parse("unix-abstract:" + std::string(un.sun_path + 1, length));
  }
  return Address::parse("unix://" + std::string(un.sun_path, ::strnlen(un.sun_path, length + 1)));
}

SocketAddress own_address(int fd) noexcept {
  SocketAddress result;
  result.size = sizeof result.storage;
  if (::getsockname(fd, result.get(), &result.size) != 0) result.size = 0;
  return result;
}

SocketAddress peer_address(int fd) noexcept {
  SocketAddress result;
  result.size = sizeof result.storage;
  if (::getpeername(fd, result.get(), &result.size) != 0) result.size = 0;
  return result;
}

bool has_one_address(const SocketAddress& own, const SocketAddress& peer) noexcept {
  if (own.family() != peer.family()) return false;
  const auto same = [&](const auto& a, const auto& b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
  };
  if (own.family() == AF_INET) {
    return same(reinterpret_cast<const sockaddr_in&>(own.storage).sin_addr,
                reinterpret_cast<const sockaddr_in&>(peer.storage).sin_addr);
  }
  return own.family() == AF_INET6 &&
         same(reinterpret_cast<const sockaddr_in6&>(own.storage).sin6_addr,
              reinterpret_cast<const sockaddr_in6&>(peer.storage).sin6_addr);
}

bool is_loopback(const SocketAddress& address) noexcept {
  const auto* v4 = reinterpret_cast<const unsigned char*>(
      &reinterpret_cast<const sockaddr_in&>(address.storage).sin_addr);
  if (address.family() == AF_INET) return v4[0] == 127;
  if (address.family() != AF_INET6) return false;
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

int make_socket(int family, std::error_code& error) noexcept {
  const int fd = ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) error = {errno, std::generic_category()};
  return fd;
}

namespace {

/// Has one error: the socket file does not exist. It counts as a refusal, but is more precise.
class NoSocketFile final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "batchrpc.socket_file"; }
  [[nodiscard]] std::string message(int /*value*/) const override {
    return "the socket file does not exist";
  }
  [[nodiscard]] std::error_condition default_error_condition(
      int /*value*/) const noexcept override {
    return std::errc::connection_refused;
  }
};

}  // namespace

std::error_code connect_error(int error) noexcept {
  static const auto& no_socket_file = *new NoSocketFile;  // nodes may live to the program's end
  if (error == ENOENT) return {error, no_socket_file};
  return {error, std::generic_category()};
}

}  // namespace batchrpc::detail
