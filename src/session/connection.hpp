#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/transport/loop.hpp"
#include "batchrpc/transport/stream.hpp"
#include "session/output_queue.hpp"
#include "wire/frame.hpp"

namespace batchrpc {

class Connection;

/// Takes the frames of a connection. Called by the thread that drives the loop, in order, never
/// concurrently for one connection.
class FrameSink {
 public:
  virtual ~FrameSink() = default;

  /// A frame has arrived, with its payloads if it declares them inline. Both are views of the read
  /// buffer, without an owner, and are valid until this returns (detail::own_payloads). Throws
  /// BadMessage to have the connection dropped.
  virtual void on_frame(const wire::FrameView& frame, std::vector<Bytes>& inline_payloads) = 0;

  /// Returns the memory for the `size` bytes of a chunk. They are then written there, perhaps in
  /// several steps. An empty span: the bytes are dropped, since their call has ended. Throws
  /// BadMessage.
  virtual std::span<std::byte> chunk_target(const wire::FrameHeader& chunk) = 0;
  /// All bytes of the chunk last asked for have arrived.
  virtual void on_chunk(const wire::FrameHeader& chunk) = 0;

  /// The stream has ended. `why` is a text for people. Called once per stream; it may start()
  /// again.
  virtual void on_closed(const std::string& why, bool protocol_error) = 0;
};

struct ConnectionLimits {
  std::uint64_t before_hello_bytes = 64 * 1024;  ///< of all frames before the peer is known
  std::uint64_t frame_bytes = 64 * 1024 * 1024;  ///< the largest frame, with inline payloads
};

/// Sends and receives frames over a stream. Reads in batches, writes all that is queued at once,
/// and cuts and joins chunks. Another stream may replace the present one. An incomplete frame that
/// was read is then forgotten, and the output continues as OutputQueue describes. Owned by shared
/// pointers. All functions run on the loop, except those that send.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<Loop> loop, std::shared_ptr<WaitContext> context,
             ConnectionLimits limits);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Begins to read, in place of the previous stream, if any.
  void start(std::unique_ptr<Stream> stream, std::weak_ptr<FrameSink> sink);
  /// Returns the stream and closes. Only the handshake was read from it.
  [[nodiscard]] std::unique_ptr<Stream> release();

  /// Ends the handshake: frames that waited are sent, larger ones are accepted.
  void open();

  [[nodiscard]] OutputQueue& output() noexcept { return output_; }

  /// Sends the queued output now, on the calling thread. Any thread may call it.
  void flush();
  /// Makes the loop send the queued output soon. Any thread may call it.
  void flush_soon();

  /// Sends as much of the queued output as the stream takes at once, then closes. Does not call the
  /// sink's on_closed(). On the loop.
  void close();

  /// Ends the stream as if the peer had, and calls the sink's on_closed(). False when there is no
  /// stream.
  bool break_off(const std::string& why);

  /// Whether anything was read since the last call of this function.
  [[nodiscard]] bool take_heard() noexcept {
    return heard_.exchange(false, std::memory_order_relaxed);
  }

  /// The bytes read from all its streams.
  [[nodiscard]] std::uint64_t bytes_received() const noexcept {
    return bytes_received_.load(std::memory_order_relaxed);
  }

  /// The time at which the bytes being handled were read, in Loop::ticks(). On the loop.
  [[nodiscard]] std::uint64_t read_at() const noexcept { return read_at_; }

  [[nodiscard]] std::string description() const;
  /// The bytes that broke the protocol, as the end of a log line: "; it begins with ..."
  /// (first_bytes_text). Empty if there are none. On the loop.
  [[nodiscard]] const std::string& offence() const noexcept { return offence_; }
  [[nodiscard]] Address local_address() const { return stream_->local_address(); }

 private:
  class Batch;

  void wait_readable();
  void read_ready();
  bool read_once(Batch& batch, std::span<std::byte> scratch);
  bool drop_rest(Batch& batch, std::span<std::byte> scratch);
  bool consume(Batch& batch);
  void begin_chunk(const wire::FrameHeader& header, Batch& batch);
  void finish_direct(Batch& batch);
  void deliver(const wire::FrameView& frame, std::span<const std::byte> payloads, Batch& batch);
  void wait_writable();
  void handle_flushed(OutputQueue::Flushed flushed);
  void note_heard(std::size_t bytes) noexcept;
  void fail(const std::string& why, bool protocol_error);
  void end_stream();

  const std::shared_ptr<Loop> loop_;
  const std::shared_ptr<WaitContext> context_;
  const ConnectionLimits limits_;
  std::unique_ptr<Stream> stream_;
  std::weak_ptr<FrameSink> sink_;
  OutputQueue output_;
  std::atomic<bool> flush_posted_{false};

  // The part of an incomplete frame that has been read.
  std::vector<std::byte> partial_;

  // Bytes that bypass the scratch buffer and go directly to their place: those of a chunk or of a
  // large frame.
  enum class Direct : std::uint8_t { none, chunk, dropped, frame };
  Direct direct_ = Direct::none;
  std::span<std::byte> direct_rest_;
  std::uint64_t direct_skip_ = 0;  // padding behind them, or all of a dropped chunk
  wire::FrameHeader chunk_;
  std::vector<Word> large_frame_;

  std::uint64_t read_at_ = 0;
  unsigned streams_ = 0;         // the number of streams so far
  bool live_ = false;            // whether the last of them has not ended
  bool waits_to_write_ = false;  // waits until the stream is writable
  std::uint64_t bytes_before_hello_ = 0;
  std::string offence_;
  bool open_ = false;
  bool closed_ = false;
  std::atomic<bool> heard_{false};
  std::atomic<std::uint64_t> bytes_received_{0};
};

}  // namespace batchrpc
