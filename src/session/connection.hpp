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

/// What takes the frames of a connection. Called by the thread that drives the loop, in order,
/// never concurrently for one connection.
class FrameSink {
 public:
  virtual ~FrameSink() = default;

  /// A frame and, where it declares them inline, its payloads: views of what was read, without an
  /// owner, until this returns (detail::own_payloads). Throws BadMessage to have the connection
  /// dropped.
  virtual void on_frame(const wire::FrameView& frame, std::vector<Bytes>& inline_payloads) = 0;

  /// Where the `size` bytes of a chunk go; they are then written there, perhaps in several steps.
  /// An empty span: nowhere, they are dropped (the call that they belong to has ended). Throws
  /// BadMessage.
  virtual std::span<std::byte> chunk_target(const wire::FrameHeader& chunk) = 0;
  /// All bytes of the chunk last asked for are there.
  virtual void on_chunk(const wire::FrameHeader& chunk) = 0;

  /// The stream has ended: `why` is for people. Called once a stream; it may start() again.
  virtual void on_closed(const std::string& why, bool protocol_error) = 0;
};

struct ConnectionLimits {
  std::uint64_t before_hello_bytes = 64 * 1024;  ///< all frames before the peer is known
  std::uint64_t frame_bytes = 64 * 1024 * 1024;  ///< largest frame, inline payloads included
};

/// A stream, as frames: reads in batches, writes what has gathered in one go, cuts and joins
/// chunks. Another stream may take its place: what was read of a frame is then forgotten, and the
/// output goes on as OutputQueue says. Owned by shared pointers; everything but the sending
/// functions runs on the loop.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<Loop> loop, std::shared_ptr<WaitContext> context,
             ConnectionLimits limits);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Begins to read, in place of the stream before, if any.
  void start(std::unique_ptr<Stream> stream, std::weak_ptr<FrameSink> sink);
  /// Gives the stream away, of which nothing but the handshake was read, and closes.
  [[nodiscard]] std::unique_ptr<Stream> release();

  /// The handshake is over: frames that waited are sent, larger ones are accepted.
  void open();

  [[nodiscard]] OutputQueue& output() noexcept { return output_; }

  /// Sends what is queued now, on the calling thread; any thread.
  void flush();
  /// Has the loop send what is queued, soon; any thread.
  void flush_soon();

  /// Sends what is queued as far as the stream takes it at once, then closes. The sink's
  /// on_closed() is not called. On the loop.
  void close();

  /// Ends the stream as if the other side had: the sink is told. False when there is none.
  bool break_off(const std::string& why);

  /// Whether anything was read since the last time that this was asked.
  [[nodiscard]] bool take_heard() noexcept {
    return heard_.exchange(false, std::memory_order_relaxed);
  }

  /// What was read from all its streams.
  [[nodiscard]] std::uint64_t bytes_received() const noexcept {
    return bytes_received_.load(std::memory_order_relaxed);
  }

  /// When the bytes that are being dealt with were read, by Loop::ticks(). On the loop.
  [[nodiscard]] std::uint64_t read_at() const noexcept { return read_at_; }

  [[nodiscard]] std::string description() const;
  /// What broke the protocol, to go on a log line: "; it begins with ..." (first_bytes_text), or
  /// empty. On the loop.
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

  // What has been read of a frame that is not there as a whole.
  std::vector<std::byte> partial_;

  // Bytes that go past the scratch buffer to where they belong: a chunk's, or a large frame's.
  enum class Direct : std::uint8_t { none, chunk, dropped, frame };
  Direct direct_ = Direct::none;
  std::span<std::byte> direct_rest_;
  std::uint64_t direct_skip_ = 0;  // padding behind them; all of a dropped chunk
  wire::FrameHeader chunk_;
  std::vector<Word> large_frame_;

  std::uint64_t read_at_ = 0;
  unsigned streams_ = 0;         // so far
  bool live_ = false;            // whether the last of them has not ended
  bool waits_to_write_ = false;  // for it to become writable
  std::uint64_t bytes_before_hello_ = 0;
  std::string offence_;
  bool open_ = false;
  bool closed_ = false;
  std::atomic<bool> heard_{false};
  std::atomic<std::uint64_t> bytes_received_{0};
};

}  // namespace batchrpc
