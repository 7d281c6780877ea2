#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "call_benchmark/shape.hpp"

namespace call_benchmark {

/// One end of a byte stream, for the floor's loops. Only one thread may use it. Its functions throw
/// std::system_error.
class Channel {
 public:
  virtual ~Channel() = default;
  /// For epoll: readable if there may be data to receive.
  [[nodiscard]] virtual int descriptor() const = 0;
  /// Receives available data without waiting; returns 0 if there is none. Throws EndOfChannel if
  /// the other end has closed.
  virtual std::size_t receive(std::span<std::byte> room) = 0;
  /// Sends all bytes.
  virtual void send(std::span<const std::byte> bytes) = 0;
};

class EndOfChannel : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override {
    return "the peer closed the floor's connection";
  }
};

/// Accepts channels.
class Acceptor {
 public:
  virtual ~Acceptor() = default;
  [[nodiscard]] virtual int descriptor() const = 0;
  /// The next channel; null after close().
  virtual std::unique_ptr<Channel> accept() = 0;
  /// Makes accept() return null from now on. Any thread may call it.
  virtual void close() = 0;
  /// The address for connect().
  [[nodiscard]] virtual std::string address() const = 0;
};

/// Listens on loopback, or on a Unix socket with a name that the kernel chooses.
std::unique_ptr<Acceptor> listen_on_socket(Transport transport);
std::unique_ptr<Channel> connect_socket(Transport transport, const std::string& address);

/// Two queues between threads of this process, each under a mutex. A thread that sleeps in epoll is
/// woken through an eventfd, once for everything queued until then.
class InprocAcceptor : public Acceptor {
 public:
  [[nodiscard]] static std::unique_ptr<InprocAcceptor> make();
  /// Connects; the other end is accepted. Any thread may call it.
  virtual std::unique_ptr<Channel> connect() = 0;
};

}  // namespace call_benchmark
