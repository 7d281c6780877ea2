#include <sys/socket.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "call_benchmark/channel.hpp"
#include "common/sockets.hpp"
#include "common/throw_errno.hpp"

namespace call_benchmark {

namespace {

using batchrpc_benchmarks::Listener;
using batchrpc_benchmarks::Socket;
using batchrpc_benchmarks::SocketKind;
using batchrpc_benchmarks::throw_errno;

SocketKind kind_of(Transport transport) {
  return transport == Transport::unix_socket ? SocketKind::unix_socket : SocketKind::tcp;
}

/// A blocking socket, so that send() waits for room itself.
class SocketChannel final : public Channel {
 public:
  explicit SocketChannel(Socket socket) : socket_(std::move(socket)) {}

  [[nodiscard]] int descriptor() const override { return socket_.get(); }

  std::size_t receive(std::span<std::byte> room) override {
    const ssize_t count = ::recv(socket_.get(), room.data(), room.size(), MSG_DONTWAIT);
    if (count > 0) return static_cast<std::size_t>(count);
    if (count == 0 || errno == ECONNRESET) throw EndOfChannel();
    if (errno == EAGAIN || errno == EINTR) return 0;
    throw_errno("recv");
  }

  void send(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count >= 0) {
        bytes = bytes.subspan(static_cast<std::size_t>(count));
      } else if (errno == EPIPE || errno == ECONNRESET) {
        throw EndOfChannel();
      } else if (errno != EINTR) {
        throw_errno("send");
      }
    }
  }

 private:
  Socket socket_;
};

class SocketAcceptor final : public Acceptor {
 public:
  explicit SocketAcceptor(Transport transport) : listener_(kind_of(transport)) {}

  [[nodiscard]] int descriptor() const override { return listener_.descriptor(); }

  std::unique_ptr<Channel> accept() override {
    std::optional<Socket> socket = listener_.accept();
    if (!socket) return nullptr;
    return std::make_unique<SocketChannel>(std::move(*socket));
  }

  void close() override { listener_.close(); }

  [[nodiscard]] std::string address() const override { return listener_.address(); }

 private:
  Listener listener_;
};

}  // namespace

std::unique_ptr<Acceptor> listen_on_socket(Transport transport) {
  return std::make_unique<SocketAcceptor>(transport);
}

std::unique_ptr<Channel> connect_socket(Transport transport, const std::string& address) {
  return std::make_unique<SocketChannel>(
      batchrpc_benchmarks::connect_to(kind_of(transport), address));
}

}  // namespace call_benchmark
