#include "common/sockets.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "common/throw_errno.hpp"

namespace batchrpc_benchmarks {

namespace {

Socket make_socket(SocketKind kind) {
  const int family = kind == SocketKind::tcp ? AF_INET : AF_UNIX;
  return Socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

void prepare(SocketKind kind, const Socket& socket) {
  if (kind != SocketKind::tcp) return;
  const int yes = 1;
  if (::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) != 0)
    throw_errno("TCP_NODELAY");
  constexpr char kReno[] = "reno";  // used if the system allows it
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, kReno, sizeof kReno - 1);
}

/// Room for an address of either family.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

SocketAddress tcp_address(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  SocketAddress result;
  std::memcpy(&result.storage, &address, sizeof address);
  result.size = sizeof address;
  return result;
}

/// An abstract name. If empty, the kernel chooses one.
SocketAddress unix_address(const std::string& name) {
  sockaddr_un address{};
  if (name.size() + 1 > sizeof address.sun_path) {
    throw std::invalid_argument("a Unix socket's name is too long");
  }
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  SocketAddress result;
  std::memcpy(&result.storage, &address, sizeof address);
  result.size = static_cast<socklen_t>(sizeof(sa_family_t) + (name.empty() ? 0 : 1 + name.size()));
  return result;
}

SocketAddress to_address(SocketKind kind, const std::string& text) {
  if (kind == SocketKind::unix_socket) return unix_address(text);
  return tcp_address(static_cast<std::uint16_t>(std::stoi(text)));
}

}  // namespace

Socket::Socket(int descriptor) : descriptor_(descriptor) {
  if (descriptor_ < 0) throw_errno("socket");
}

Socket::~Socket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Listener::Listener(SocketKind kind) : kind_(kind), socket_(make_socket(kind)) {
  SocketAddress own = to_address(kind, kind == SocketKind::tcp ? "0" : "");
  if (::bind(socket_.get(), own.get(), own.size) != 0) throw_errno("bind");
  if (::listen(socket_.get(), SOMAXCONN) != 0) throw_errno("listen");
}

std::string Listener::address() const {
  SocketAddress own;
  if (::getsockname(socket_.get(), own.get(), &own.size) != 0) throw_errno("getsockname");
  if (kind_ == SocketKind::tcp) {
    sockaddr_in address{};
    std::memcpy(&address, &own.storage, sizeof address);
    return std::to_string(ntohs(address.sin_port));
  }
  sockaddr_un address{};
  std::memcpy(&address, &own.storage, sizeof address);
  return {address.sun_path + 1, own.size - sizeof(sa_family_t) - 1};
}

std::optional<Socket> Listener::accept() const {
  const int descriptor = ::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC);
  if (descriptor < 0 && errno == EINVAL) return std::nullopt;  // the listener was shut down
  Socket socket(descriptor);
  prepare(kind_, socket);
  return socket;
}

void Listener::close() const { ::shutdown(socket_.get(), SHUT_RDWR); }

Socket connect_to(SocketKind kind, const std::string& address) {
  Socket socket = make_socket(kind);
  SocketAddress peer = to_address(kind, address);
  if (::connect(socket.get(), peer.get(), peer.size) != 0) throw_errno("connect");
  prepare(kind, socket);
  return socket;
}

}  // namespace batchrpc_benchmarks
