#include "status/listener.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "batchrpc/base/error.hpp"

namespace batchrpc::status {
namespace {

constexpr int kBacklog = 64;

bool is_loopback(const sockaddr* address) noexcept {
  if (address->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, address, sizeof v4);
    return (ntohl(v4.sin_addr.s_addr) >> 24U) == 127;
  }
  if (address->sa_family != AF_INET6) return false;
  sockaddr_in6 v6{};
  std::memcpy(&v6, address, sizeof v6);
  return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

std::uint16_t port_of(int socket) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return 0;
  if (bound.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port);
}

[[noreturn]] void refuse(const ListenAddress& address, const std::string& why, bool is_taken) {
  throw JoinFailed("the status page cannot be served at " + address.to_string() + ": " + why +
                   (is_taken ? "; choose another port, or 0 for any free port"
                             : "; use an address of this machine, such as 127.0.0.1:0"));
}

}  // namespace

Listener listen_at(const ListenAddress& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (error != 0) refuse(address, ::gai_strerror(error), false);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, ::freeaddrinfo);

  int why = EADDRNOTAVAIL;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    OwnedFd socket(
        ::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol));
    const int on = 1;
    if (socket.get() >= 0 &&
        ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        ::bind(socket.get(), at->ai_addr, at->ai_addrlen) == 0 &&
        ::listen(socket.get(), kBacklog) == 0) {
      const std::uint16_t port = port_of(socket.get());
      return {.socket = std::move(socket),
              .address = {.host = address.host, .port = port},
              .is_loopback = is_loopback(at->ai_addr)};
    }
    why = errno;
  }
  refuse(address, std::strerror(why), why == EADDRINUSE || why == EACCES);
}

}  // namespace batchrpc::status
