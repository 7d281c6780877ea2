#pragma once

#include <optional>
#include <string>
#include <utility>

namespace batchrpc_benchmarks {

/// A file descriptor that is closed on destruction.
class Socket {
 public:
  /// Throws a std::system_error with errno if `descriptor` is below 0.
  explicit Socket(int descriptor);
  ~Socket();
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  [[nodiscard]] int get() const { return descriptor_; }

 private:
  int descriptor_;
};

enum class SocketKind : unsigned char { tcp, unix_socket };

/// Listens on loopback, or on a Unix socket with a name that the kernel chooses. Accepted and
/// connecting sockets block, send at once (TCP_NODELAY), and use reno, like batchrpc's own sockets
/// on one machine. Throws std::system_error.
class Listener {
 public:
  explicit Listener(SocketKind kind);

  [[nodiscard]] int descriptor() const { return socket_.get(); }
  /// The address for connect_to().
  [[nodiscard]] std::string address() const;
  /// The next connection; nothing after close().
  [[nodiscard]] std::optional<Socket> accept() const;
  /// Stops accepting connections. Any thread may call it.
  void close() const;

 private:
  SocketKind kind_;
  Socket socket_;
};

/// Throws std::system_error.
[[nodiscard]] Socket connect_to(SocketKind kind, const std::string& address);

}  // namespace batchrpc_benchmarks
