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

/// The first message of a floor's client.
struct FloorHello {
  std::uint64_t bytes = 0;  ///< of each payload
  std::uint32_t window = 1;
  std::uint32_t echo = 0;  ///< else replies are headers only
};

/// Precedes each payload, and is the whole reply to a push.
struct FloorHeader {
  std::uint64_t bytes = 0;
  std::uint64_t number = 0;
};

class EndOfStream : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override {
    return "the peer closed the floor's connection";
  }
};

/// A floor's connection with blocking calls. Two threads may use it, one for each direction. All
/// functions throw std::system_error and EndOfStream.
class FloorStream {
 public:
  /// `check` is called on the waiting thread; it may be empty.
  FloorStream(batchrpc_benchmarks::Socket socket, Check check);

  /// Sends all of the parts, and modifies them.
  void send(std::span<iovec> parts) const;
  void send(std::span<const std::byte> bytes) const;
  /// Receives available data. With `wait` false it returns 0 if there is none.
  std::size_t receive(std::span<std::byte> room, bool wait) const;
  /// Makes the threads that send or receive throw EndOfStream. Any thread may call it.
  void end() const;

 private:
  void look() const;

  batchrpc_benchmarks::Socket socket_;
  Check check_;
};

/// A ring of slots for messages of one length, including the header. Each message is received
/// directly into the slot where it is used.
class MessageRing {
 public:
  MessageRing(std::size_t payload_bytes, std::size_t slots);

  /// Receives more data, and returns how many messages it completed. With `wait` false it returns 0
  /// if there is no data.
  std::size_t receive(const FloorStream& stream, bool wait);
  /// The `number`th message, from 0 on, with its header. Valid until `slots` more messages have
  /// begun to arrive.
  [[nodiscard]] std::span<const std::byte> message(std::size_t number) const;
  [[nodiscard]] static std::size_t message_bytes(std::size_t payload_bytes) {
    return sizeof(FloorHeader) + payload_bytes;
  }

 private:
  std::size_t message_bytes_;
  std::vector<std::byte> memory_;
  std::size_t position_ = 0;  // where the next byte goes
  std::size_t partial_ = 0;   // bytes of the incomplete message
};

/// How many messages of a window are sent or received with one call: small ones together, large
/// ones alone, so that one buffer is reused.
std::size_t together(std::size_t payload_bytes, std::size_t window);

}  // namespace tensor_benchmark
