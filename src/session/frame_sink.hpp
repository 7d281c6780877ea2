#pragma once

#include <span>
#include <string>
#include <vector>

#include "batchrpc/base/bytes.hpp"
#include "wire/frame.hpp"

namespace batchrpc {

/// A call, result or error that was not kept.
struct DroppedFrame {
  wire::FrameHeader header{};
  std::uint64_t bytes = 0;                     ///< the size of the frame
  bool no_memory = false;                      ///< otherwise it is larger than the limit
  std::vector<std::uint64_t> payload_sizes{};  ///< of the payloads that follow
};

/// Takes the frames of a connection. Called by the thread that drives the loop, in order, never
/// concurrently for one connection.
class FrameSink {
 public:
  virtual ~FrameSink() = default;

  /// A frame has arrived, with its payloads if it declares them inline. Both are views of the read
  /// buffer, without an owner, and are valid until this returns (detail::own_payloads). Throws
  /// BadMessage to have the connection dropped.
  virtual void on_frame(const wire::FrameView& frame, std::vector<Bytes>& inline_payloads) = 0;

  /// All of a frame has come and was dropped. Throws BadMessage.
  virtual void on_dropped_frame(const DroppedFrame& frame) = 0;

  /// Returns the memory for the `size` bytes of a chunk. They are then written there, perhaps in
  /// several steps. An empty span: the bytes are dropped as they come. Runs no code of the program.
  /// Throws BadMessage.
  virtual std::span<std::byte> chunk_target(const wire::FrameHeader& chunk) = 0;
  /// Follows chunk_target(), if that was empty.
  virtual void on_dropped_chunk() = 0;
  /// All bytes of the chunk last asked for have arrived.
  virtual void on_chunk(const wire::FrameHeader& chunk) = 0;

  /// The stream has ended. `why` is a text for people. Called once per stream; it may start()
  /// again.
  virtual void on_closed(const std::string& why, bool protocol_error) = 0;
};

}  // namespace batchrpc
