#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace batchrpc::test {

/// A bare connection to 127.0.0.1, by which a test sends what no client of HTTP would.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
      close();
      throw std::runtime_error("nobody listens at port " + std::to_string(port));
    }
  }
  ~RawClient() { close(); }
  RawClient(RawClient&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  RawClient& operator=(RawClient&&) = delete;

  /// As much as is taken at once, if the server has not closed.
  void send(std::string_view bytes) const {
    (void)!::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  void end_sending() const { ::shutdown(socket_, SHUT_WR); }
  /// What comes until the server closes, or for so long nothing does.
  [[nodiscard]] std::string read_all(
      std::chrono::milliseconds patience = std::chrono::seconds(20)) const {
    std::string all;
    std::array<char, 8192> block;
    pollfd polled{.fd = socket_, .events = POLLIN, .revents = 0};
    while (::poll(&polled, 1, static_cast<int>(patience.count())) == 1) {
      const ssize_t bytes = ::recv(socket_, block.data(), block.size(), 0);
      if (bytes <= 0) break;
      all.append(block.data(), static_cast<std::size_t>(bytes));
    }
    return all;
  }
  /// Whether the server closes within that time.
  [[nodiscard]] bool is_closed_within(std::chrono::milliseconds time) const {
    const auto until = std::chrono::steady_clock::now() + time;
    (void)read_all(time);
    return std::chrono::steady_clock::now() < until;
  }
  /// Closes with a reset: a hundred thousand connections leave no ports in TIME_WAIT.
  void reset() {
    const linger now{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }
  [[nodiscard]] int socket() const noexcept { return socket_; }

 private:
  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }

  int socket_;
};

/// An answer, taken apart.
struct Answer {
  int status = 0;
  std::string head{};
  std::string body{};

  explicit Answer(const std::string& bytes) {
    const std::size_t end = bytes.find("\r\n\r\n");
    if (!bytes.starts_with("HTTP/1.1 ") || end == std::string::npos) return;
    status = std::stoi(bytes.substr(9, 3));
    head = bytes.substr(0, end + 2);
    body = bytes.substr(end + 4);
  }
  [[nodiscard]] bool has(const std::string& line) const {
    return head.find("\r\n" + line + "\r\n") != std::string::npos;
  }
};

/// The port of "http://127.0.0.1:1234".
inline std::uint16_t port_of(const std::string& address) {
  return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

inline Answer ask(std::uint16_t port, const std::string& request) {
  const RawClient client(port);
  client.send(request);
  return Answer(client.read_all());
}

inline Answer get(const std::string& address, const std::string& target,
                  const std::string& headers = "Host: localhost\r\n") {
  return ask(port_of(address), "GET " + target + " HTTP/1.1\r\n" + headers + "\r\n");
}

}  // namespace batchrpc::test
