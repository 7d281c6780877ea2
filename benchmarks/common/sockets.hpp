#pragma once

#include <optional>
#include <string>
#include <utility>

namespace batchrpc_benchmarks {

/// A file descriptor that is closed in the end.
class Socket {
 public:
  /// Throws std::system_error of errno for one below 0.
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

/// Listens on loopback, or on a Unix socket with a name of the kernel's choice. What it accepts,
/// and what connects to it, blocks, sends at once what it is given (TCP_NODELAY), and by reno, as
/// batchrpc's do on one machine. Throws std::system_error.
class Listener {
 public:
  explicit Listener(SocketKind kind);

  [[nodiscard]] int descriptor() const { return socket_.get(); }
  /// What connect_to() needs to know.
  [[nodiscard]] std::string address() const;
  /// The next one to connect; nothing after close().
  [[nodiscard]] std::optional<Socket> accept() const;
  /// Nobody can connect any more. On any thread.
  void close() const;

 private:
  SocketKind kind_;
  Socket socket_;
};

/// Throws std::system_error.
[[nodiscard]] Socket connect_to(SocketKind kind, const std::string& address);

}  // namespace batchrpc_benchmarks
