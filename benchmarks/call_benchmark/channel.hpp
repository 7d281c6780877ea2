#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "call_benchmark/shape.hpp"

namespace call_benchmark {

/// One end of a stream of bytes, as the floor's loops use it. One thread uses it. Its functions
/// throw std::system_error.
class Channel {
 public:
  virtual ~Channel() = default;
  /// For epoll: readable when there may be something to receive.
  [[nodiscard]] virtual int descriptor() const = 0;
  /// What is there, without waiting; 0: nothing. Throws EndOfChannel when the other end has gone.
  virtual std::size_t receive(std::span<std::byte> room) = 0;
  /// All of it.
  virtual void send(std::span<const std::byte> bytes) = 0;
};

class EndOfChannel : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override {
    return "the other end of a floor's connection has gone";
  }
};

/// Where channels come in.
class Acceptor {
 public:
  virtual ~Acceptor() = default;
  [[nodiscard]] virtual int descriptor() const = 0;
  /// The next one; null: none any more, end.
  virtual std::unique_ptr<Channel> accept() = 0;
  /// accept() returns null from now on. On any thread.
  virtual void close() = 0;
  /// What connect() needs to know.
  [[nodiscard]] virtual std::string address() const = 0;
};

/// Listens on loopback, or on a Unix socket with a name of the kernel's choice.
std::unique_ptr<Acceptor> listen_on_socket(Transport transport);
std::unique_ptr<Channel> connect_socket(Transport transport, const std::string& address);

/// Two queues under a mutex each, between threads of this process. A thread that sleeps in epoll is
/// woken through an eventfd, once for all that is queued meanwhile.
class InprocAcceptor : public Acceptor {
 public:
  [[nodiscard]] static std::unique_ptr<InprocAcceptor> make();
  /// The other end is accepted. On any thread.
  virtual std::unique_ptr<Channel> connect() = 0;
};

}  // namespace call_benchmark
