#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "batchrpc/transport/loop.hpp"
#include "batchrpc/transport/stream.hpp"
#include "session/frame_reader.hpp"
#include "session/output_queue.hpp"
#include "session/scratch.hpp"

namespace batchrpc {

/// Sends and receives frames over a stream. Reads in batches, a turn (ReadTurn) at a time, writes
/// all that is queued at once, and cuts and joins chunks. Another stream may replace the present
/// one. An incomplete frame that was read is then forgotten, and the output continues as
/// OutputQueue describes. Owned by shared pointers. All functions run on the loop, except those
/// that send.
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
  /// What the stream has proved about the peer; null if nothing, or if there is no stream. On the
  /// loop.
  [[nodiscard]] std::shared_ptr<const PeerProof> proof() const {
    return stream_ ? stream_->proof() : nullptr;
  }

 private:
  class Batch;
  // What was read and not handled when the turn was over, and the buffer in which it lies.
  struct Unread {
    Lease<ReadBuffer> buffer;
    std::span<const std::byte> bytes;
    std::uint64_t read_at = 0;
    bool more = true;  // there may be more to read behind it
  };

  void wait_readable();
  void read_ready();
  void take_turn(bool goes_on);
  bool go_on(FrameReader::Round& round);
  void keep_unread(Lease<ReadBuffer>&& buffer, std::span<const std::byte> bytes, bool more);
  void take_turn_later();
  bool read_once(FrameReader::Round& round);
  void wait_writable();
  void handle_flushed(OutputQueue::Flushed flushed);
  void note_heard(std::size_t bytes) noexcept;
  void fail(const std::string& why, bool protocol_error);
  void end_stream();

  const std::shared_ptr<Loop> loop_;
  const std::shared_ptr<WaitContext> context_;
  std::unique_ptr<Stream> stream_;
  std::weak_ptr<FrameSink> sink_;
  FrameReader reader_;
  std::unique_ptr<Unread> unread_;
  bool messages_take_long_ = false;  // as its last turn has shown
  OutputQueue output_;
  std::atomic<bool> flush_posted_{false};

  std::uint64_t read_at_ = 0;
  unsigned streams_ = 0;         // the number of streams so far
  bool live_ = false;            // whether the last of them has not ended
  bool waits_to_write_ = false;  // waits until the stream is writable
  std::string offence_;
  bool closed_ = false;
  std::atomic<bool> heard_{false};
  std::atomic<std::uint64_t> bytes_received_{0};
};

}  // namespace batchrpc
