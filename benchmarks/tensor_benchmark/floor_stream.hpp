#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <vector>

#include "common/sockets.hpp"
#include "tensor_benchmark/client.hpp"

namespace tensor_benchmark {

/// What a floor's client sends first.
struct FloorHello {
  std::uint64_t bytes = 0;  ///< of each payload
  std::uint32_t window = 1;
  std::uint32_t echo = 0;  ///< or else replies are headers only
};

/// Before each payload, and all there is of a push's reply.
struct FloorHeader {
  std::uint64_t bytes = 0;
  std::uint64_t number = 0;
};

class EndOfStream : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override {
    return "the other end of a floor's connection has gone";
  }
};

/// A floor's connection, whose calls block. Two threads may use it, one for each direction. All
/// throw std::system_error, and EndOfStream.
class FloorStream {
 public:
  /// `check`: on whichever thread waits; may be empty, and nobody then is asked.
  FloorStream(batchrpc_benchmarks::Socket socket, Check check);

  /// All of the parts, which are changed.
  void send(std::span<iovec> parts) const;
  void send(std::span<const std::byte> bytes) const;
  /// What is there. `wait` false: 0 when that is nothing.
  std::size_t receive(std::span<std::byte> room, bool wait) const;
  /// Whoever is sending or receiving gets an EndOfStream. On any thread.
  void end() const;

 private:
  void look() const;

  batchrpc_benchmarks::Socket socket_;
  Check check_;
};

/// Room for some messages of one length, header included, one after the other, round and round:
/// each is received to where it is used.
class MessageRing {
 public:
  MessageRing(std::size_t payload_bytes, std::size_t slots);

  /// Receives more; how many messages became whole by that. `wait` false: 0 when nothing is there.
  std::size_t receive(const FloorStream& stream, bool wait);
  /// That which came as the `number`th, from 0 on, with its header; there until `slots` more have
  /// begun to come.
  [[nodiscard]] std::span<const std::byte> message(std::size_t number) const;
  [[nodiscard]] static std::size_t message_bytes(std::size_t payload_bytes) {
    return sizeof(FloorHeader) + payload_bytes;
  }

 private:
  std::size_t message_bytes_;
  std::vector<std::byte> memory_;
  std::size_t position_ = 0;  // where the next byte goes
  std::size_t partial_ = 0;   // bytes of a message that is not whole
};

/// How many messages are sent, or received, by one call, of those that a window allows: small ones
/// together, large ones alone, so that one buffer is used again.
std::size_t together(std::size_t payload_bytes, std::size_t window);

}  // namespace tensor_benchmark
