#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "call_benchmark/channel.hpp"

namespace call_benchmark {

namespace {

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {
    if (descriptor_ < 0) fail("socket");
  }
  ~Socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  [[nodiscard]] int get() const { return descriptor_; }

 private:
  int descriptor_;
};

Socket make_socket(Transport transport) {
  const int family = transport == Transport::tcp ? AF_INET : AF_UNIX;
  return Socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

void send_at_once(Transport transport, const Socket& socket) {
  const int yes = 1;
  if (transport == Transport::tcp &&
      ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) != 0) {
    fail("TCP_NODELAY");
  }
}

/// A socket that blocks, so that send() waits for room by itself.
class SocketChannel final : public Channel {
 public:
  explicit SocketChannel(Socket socket) : socket_(std::move(socket)) {}

  [[nodiscard]] int descriptor() const override { return socket_.get(); }

  std::size_t receive(std::span<std::byte> room) override {
    const ssize_t count = ::recv(socket_.get(), room.data(), room.size(), MSG_DONTWAIT);
    if (count > 0) return static_cast<std::size_t>(count);
    if (count == 0 || errno == ECONNRESET) throw EndOfChannel();
    if (errno == EAGAIN || errno == EINTR) return 0;
    fail("recv");
  }

  void send(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count >= 0) {
        bytes = bytes.subspan(static_cast<std::size_t>(count));
      } else if (errno == EPIPE || errno == ECONNRESET) {
        throw EndOfChannel();
      } else if (errno != EINTR) {
        fail("send");
      }
    }
  }

 private:
  Socket socket_;
};

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

/// An abstract name; empty: the kernel chooses.
SocketAddress unix_address(const std::string& name) {
  sockaddr_un address{};
  if (name.size() + 1 > sizeof address.sun_path) {
    throw std::invalid_argument("the name of a Unix socket is too long");
  }
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  SocketAddress result;
  std::memcpy(&result.storage, &address, sizeof address);
  result.size = static_cast<socklen_t>(sizeof(sa_family_t) + (name.empty() ? 0 : 1 + name.size()));
  return result;
}

SocketAddress to_address(Transport transport, const std::string& text) {
  if (transport == Transport::unix_socket) return unix_address(text);
  return tcp_address(static_cast<std::uint16_t>(std::stoi(text)));
}

class SocketAcceptor final : public Acceptor {
 public:
  explicit SocketAcceptor(Transport transport)
      : transport_(transport), socket_(make_socket(transport)) {
    SocketAddress own = to_address(transport, transport == Transport::tcp ? "0" : "");
    if (::bind(socket_.get(), own.get(), own.size) != 0) fail("bind");
    if (::listen(socket_.get(), SOMAXCONN) != 0) fail("listen");
  }

  [[nodiscard]] int descriptor() const override { return socket_.get(); }

  std::unique_ptr<Channel> accept() override {
    const int descriptor = ::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (descriptor < 0 && errno == EINVAL) return nullptr;  // shut down
    Socket socket(descriptor);
    send_at_once(transport_, socket);
    return std::make_unique<SocketChannel>(std::move(socket));
  }

  void close() override { ::shutdown(socket_.get(), SHUT_RDWR); }

  [[nodiscard]] std::string address() const override {
    SocketAddress own;
    if (::getsockname(socket_.get(), own.get(), &own.size) != 0) fail("getsockname");
    if (transport_ == Transport::tcp) {
      sockaddr_in address{};
      std::memcpy(&address, &own.storage, sizeof address);
      return std::to_string(ntohs(address.sin_port));
    }
    sockaddr_un address{};
    std::memcpy(&address, &own.storage, sizeof address);
    return {address.sun_path + 1, own.size - sizeof(sa_family_t) - 1};
  }

 private:
  Transport transport_;
  Socket socket_;
};

}  // namespace

std::unique_ptr<Acceptor> listen_on_socket(Transport transport) {
  return std::make_unique<SocketAcceptor>(transport);
}

std::unique_ptr<Channel> connect_socket(Transport transport, const std::string& address) {
  Socket socket = make_socket(transport);
  SocketAddress peer = to_address(transport, address);
  if (::connect(socket.get(), peer.get(), peer.size) != 0) fail("connect");
  send_at_once(transport, socket);
  return std::make_unique<SocketChannel>(std::move(socket));
}

}  // namespace call_benchmark
