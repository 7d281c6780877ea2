#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "call_benchmark/channel.hpp"
#include "call_benchmark/shape.hpp"
#include "call_benchmark/stretch.hpp"

/// The floor: what the transport itself allows, measured by the plainest program that batches. The
/// server waits in epoll_wait, receives what is there into a buffer, and answers all whole messages
/// with one send; the client does the same, and sends as many new messages as answers came.
namespace call_benchmark {

/// How long the messages of a floor are, each way, in bytes.
struct MessageSizes {
  std::uint32_t request = 64;
  std::uint32_t reply = 64;

  friend bool operator==(const MessageSizes&, const MessageSizes&) = default;
};

/// Answers whoever connects, in the calling thread, until accept() gives null. With a busy client
/// connected it polls without sleeping.
void serve_floor(Acceptor& acceptor);

/// The same on a thread of its own, until destroyed. The acceptor outlives it.
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

/// `busy`: neither side sleeps while this lives.
std::unique_ptr<Client> make_floor_client(std::vector<std::unique_ptr<Channel>> channels,
                                          int in_flight, MessageSizes sizes, bool busy);

}  // namespace call_benchmark
