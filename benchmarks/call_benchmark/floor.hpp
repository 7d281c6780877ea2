#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "call_benchmark/channel.hpp"
#include "call_benchmark/shape.hpp"
#include "call_benchmark/stretch.hpp"

/// The floor: the speed that the transport itself allows, measured by the simplest program that
/// batches. The server waits in epoll_wait, receives the available data into a buffer, and answers
/// all complete messages with one send. The client does the same, and sends as many new messages as
/// answers arrived.
namespace call_benchmark {

/// The lengths of a floor's messages, in bytes.
struct MessageSizes {
  std::uint32_t request = 64;
  std::uint32_t reply = 64;

  friend bool operator==(const MessageSizes&, const MessageSizes&) = default;
};

/// Answers all clients on the calling thread, until accept() returns null. While a busy client is
/// connected, it polls without sleeping.
void serve_floor(Acceptor& acceptor);

/// Does the same on its own thread, until destroyed. The acceptor must outlive it.
class FloorServerThread {
 public:
  explicit FloorServerThread(Acceptor& acceptor);
  ~FloorServerThread();
  FloorServerThread(const FloorServerThread&) = delete;
  FloorServerThread& operator=(const FloorServerThread&) = delete;

 private:
  Acceptor& acceptor_;
  std::thread thread_;
};

/// `busy`: neither side sleeps while this client exists.
std::unique_ptr<Client> make_floor_client(std::vector<std::unique_ptr<Channel>> channels,
                                          int in_flight, MessageSizes sizes, bool busy);

}  // namespace call_benchmark
