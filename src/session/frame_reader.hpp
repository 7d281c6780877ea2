#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "session/frame_sink.hpp"
#include "session/growing_bytes.hpp"
#include "session/read_turn.hpp"
#include "wire/frame.hpp"

namespace batchrpc {

/// The most bytes that a peer may send.
struct ConnectionLimits {
  /// Of all frames before the peer is known, and of each of them.
  std::uint64_t before_hello_bytes = 64 * 1024;
  /// The largest frame, with inline payloads. Calls and replies that are larger are dropped, each
  /// by itself.
  std::uint64_t frame_bytes = 64 * 1024 * 1024;
};

/// Finds the frames and chunks in the bytes of a stream, and hands them to a FrameSink. Keeps the
/// incomplete frame between two reads, and has the bytes of chunks and large frames read directly
/// to their place. Stops between two frames when the turn of its connection is over. Not
/// thread-safe.
class FrameReader {
 public:
  /// One round of reading, with a buffer that is only lent for the round. Over when the stream is
  /// replaced, or when give_back() was called.
  class Round {
   public:
    /// All must outlive this.
    Round(FrameReader& reader, FrameSink& sink, std::span<std::byte> scratch) noexcept
        : reader_(reader), sink_(sink), scratch_(scratch), stream_(reader.streams_) {}

    /// Whether the stream has ended, or another round of reading has taken over. Do not read into
    /// the buffers then.
    [[nodiscard]] bool is_over() const noexcept {
      return given_back_ || reader_.streams_ != stream_;
    }
    /// Ends the round while the sink handles a frame: go_on() handles the rest in another round.
    /// Returns false if the round was over already.
    bool give_back();
    /// How much it may still handle; unlimited unless it is set.
    ReadTurn turn{};
    /// What lay in the buffer and was not handled when the turn was over. Empty if the reader keeps
    /// the rest, which is not a whole frame.
    [[nodiscard]] std::span<const std::byte> unread() const noexcept { return rest_; }
    /// Returns the frame that is being consumed, and all bytes behind it. Empty if there is none.
    [[nodiscard]] std::span<const std::byte> frame() const noexcept { return frame_; }

   private:
    friend class FrameReader;

    FrameReader& reader_;
    FrameSink& sink_;
    const std::span<std::byte> scratch_;
    const unsigned stream_;
    bool given_back_ = false;
    std::array<std::span<std::byte>, 3> buffers_{};  // to read into
    std::size_t offered_ = 0;                        // their size
    std::array<std::byte, 8> padding_{};             // padding is read here
    std::span<const std::byte> rest_{};              // read, but not consumed
    std::span<const std::byte> frame_{};
    GrowingBytes large_frame_{};  // the same, if the frame bypassed the buffer
  };

  explicit FrameReader(ConnectionLimits limits) noexcept : limits_(limits) {}

  /// Forgets the stream and an incomplete frame of it. The limit before the hello applies again.
  void reset();
  /// Ends the handshake: frames up to the larger limit are accepted.
  void open() noexcept { open_ = true; }

  /// Returns the buffers into which to read next.
  [[nodiscard]] std::span<const std::span<std::byte>> buffers(Round& round);
  /// `bytes` bytes were read into buffers(): hands the complete frames to the sink. Returns whether
  /// the buffers were full, so that there may be more to read. Throws BadMessage.
  bool take(Round& round, std::size_t bytes);
  /// Hands on the frames in what another round has left: `unread`, which lies in the buffer of this
  /// round, or what was given back. Throws BadMessage.
  void go_on(Round& round, std::span<const std::byte> unread);

 private:
  // Bytes that bypass the scratch buffer and go directly to their place: those of a chunk or of a
  // large frame.
  enum class Direct : std::uint8_t { none, chunk, dropped_chunk, frame, dropped_frame };

  void consume_all(Round& round);
  bool consume(Round& round);
  bool consume_large(std::size_t bytes, Round& round);
  void fill_large_frame(Round& round);
  void drop_large_frame(std::span<const std::byte> kept, bool no_memory, Round& round);
  void drop(std::uint64_t bytes, Direct what, Round& round);
  void skip(std::span<const std::byte> bytes, Round& round);
  void note_sizes(std::span<const std::byte> bytes);
  void begin_chunk(const wire::FrameHeader& header, Round& round);
  void finish_direct(Round& round);
  void deliver(const wire::FrameView& frame, std::span<const std::byte> payloads, Round& round);
  void check_before_hello(std::uint64_t bytes) const;

  const ConnectionLimits limits_;
  bool open_ = false;
  std::uint64_t bytes_before_hello_ = 0;
  unsigned streams_ = 0;  // the number of streams that were forgotten

  // The part of an incomplete frame that has been read.
  std::vector<std::byte> partial_;

  Direct direct_ = Direct::none;
  std::span<std::byte> direct_rest_;
  std::uint64_t direct_skip_ = 0;    // padding behind them, or all that is dropped
  wire::FrameHeader direct_header_;  // of that chunk or frame
  GrowingBytes large_frame_;
  std::size_t large_frame_bytes_ = 0;  // of the whole frame, as announced
  wire::PayloadSizes sizes_;           // where it lists them
  DroppedFrame dropped_;               // the large frame, if it is dropped
  std::size_t dropped_bytes_ = 0;      // those of it that have come
};

}  // namespace batchrpc
