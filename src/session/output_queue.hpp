#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <system_error>
#include <vector>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/transport/stream.hpp"
#include "batchrpc/wire/encoder.hpp"
#include "session/chunk_size.hpp"
#include "session/held_bytes.hpp"
#include "session/outgoing_payloads.hpp"
#include "session/write_batches.hpp"
#include "wire/frame_watch.hpp"

namespace batchrpc {

/// The frames that a session has yet to send, over one stream after the other. Frames that are
/// appended while a write is under way leave together in the next one, a batch. Large payloads go
/// in chunks between the frames, so that a small call overtakes them. What was written is kept,
/// payloads included, until the peer has acknowledged it: on the next stream it is sent again from
/// where the peer says that the last one ended. Both sides count the reliable frames, so no frame
/// carries a number. See docs/decisions/0015. Thread-safe.
class OutputQueue {
 public:
  /// What a frame, and the inline payloads behind it, take of the queue's bytes.
  struct Place {
    std::uint64_t begin = 0;
    std::uint64_t size = 0;
    bool has_chunks = false;  ///< whether payloads follow in chunks, which can be cut off
  };

  /// Appends a finished frame, followed by `payloads`: those that it declares as inline are copied,
  /// others are kept and sent in chunks. Before open(), frames wait. Notifies `watch`, if given,
  /// when the frame leaves; drops it when the frame never will.
  Place append(std::span<const Word> frame, std::uint64_t call, bool of_reply,
               std::vector<Bytes>&& payloads, std::shared_ptr<FrameWatch> watch = nullptr);
  /// Removes the frame of a call, unless it has been taken to be written: then false. It leaves
  /// without effect; its payloads are moved to `payloads`.
  bool retract(Place place, std::vector<Bytes>& payloads);
  /// Makes the rest of a call's payloads wait; the chunk that is being written leaves. Or lets it
  /// leave, also beyond wire::kEagerBytes. Nothing happens where no payload is left.
  void pause(std::uint64_t call);
  void resume(std::uint64_t call);
  /// Moves the payloads of a call that have not been taken to be written as a whole to `payloads`:
  /// the rest never leaves. False when none is left.
  bool cut_off(std::uint64_t call, std::vector<Bytes>& payloads);

  /// Appends a frame that goes even before open(): the handshake.
  void append_first(std::span<const Word> frame);
  /// Appends a frame that tells what was received, unless another is queued, which will.
  void append_acknowledgement(std::span<const Word> frame);

  /// Writes to `stream`, until detach(): what append_first() brings, and from open() on the rest.
  void attach(Stream* stream);
  void open();
  /// The stream is of no more use; frames wait for the next one. When this returns, no thread is
  /// inside a try_write.
  void detach();

  /// The peer has received so many reliable frames. False when so many never left.
  bool acknowledge(std::uint64_t received);
  /// The same of a new stream, before open(): from there on all is sent again. False also when the
  /// peer had acknowledged more.
  bool rewind(std::uint64_t received);
  /// How many reliable frames this side has received: frames that leave say so.
  void set_received(std::uint64_t received) noexcept {
    received_.store(received, std::memory_order_relaxed);
  }
  /// Nothing is sent any more; what is queued is dropped. When this returns, no thread is inside a
  /// try_write.
  void close();

  enum class Flushed {
    all,      ///< nothing is left, or another thread is writing and will take it along
    blocked,  ///< have flush_blocked() called when the stream is writable, then give_back()
    failed,   ///< the stream is of no more use; see error()
  };
  /// Writes what is queued until nothing is left or the stream takes no more.
  Flushed flush();
  /// The same, when the stream that had blocked is writable again.
  Flushed flush_blocked();
  /// Whether the stream is to become writable before more can be written.
  [[nodiscard]] bool is_blocked() const noexcept {
    return writer_.load(std::memory_order_relaxed) == Writer::blocked;
  }

  /// Destroys payloads that were sent: their memory may have the user's deleter, which may do
  /// anything. So nobody calls this who has writing on this queue to do or to arrange.
  void give_back();

  /// The bytes that streams have yet to take, payloads that wait left out.
  [[nodiscard]] std::size_t queued_bytes() const;
  /// The bytes of payloads that wait for the peer's credit, and that the peer has paused.
  [[nodiscard]] std::size_t ungranted_bytes() const;
  [[nodiscard]] std::size_t paused_bytes() const;
  /// The bytes that the stream has taken and may still lose.
  [[nodiscard]] std::size_t unconfirmed_bytes() const;
  /// The bytes that are kept until they are acknowledged.
  [[nodiscard]] std::size_t kept_bytes() const;
  /// The bytes that all streams have taken.
  [[nodiscard]] std::uint64_t written_bytes() const;
  /// The reliable frames that have left so far, and those of them that are acknowledged.
  struct Frames {
    std::uint64_t sent = 0;
    std::uint64_t acknowledged = 0;
    [[nodiscard]] std::uint64_t unacknowledged() const noexcept { return sent - acknowledged; }
  };
  [[nodiscard]] Frames frames() const;
  /// The bytes of calls and replies that the queue holds. A payload counts as a whole until all of
  /// it is sent and acknowledged.
  [[nodiscard]] const HeldBytes& held() const noexcept { return held_; }
  [[nodiscard]] std::error_code error() const;
  /// Gives memory back that a burst has left behind.
  void trim();

 private:
  // What leaves in the next batch.
  struct Queued {
    std::vector<std::byte> frames;
    std::size_t last_frame = 0;  // where the last frame begins
    std::uint64_t count = 0;     // of reliable frames
    HeldBytes::Part held;
  };

  // A frame in the queue, and who is notified when it leaves.
  struct Watched {
    std::uint64_t begin = 0;
    std::shared_ptr<FrameWatch> watch;
  };
  using Watches = std::vector<Watched>;

  void append_frame(std::span<const Word> frame);
  bool cut_off_of(std::uint64_t call, std::vector<Bytes>& payloads);
  Flushed write_out(std::unique_lock<std::mutex> lock);
  bool fill();
  bool take_batch();
  void take_chunk(WriteBatch& batch);
  std::span<const std::span<const std::byte>> buffers_to_write(
      WriteBatches::Buffers& buffers) const;
  void advance(std::size_t bytes);
  [[nodiscard]] Watches take_watches();
  [[nodiscard]] WriteBatches::Dropped dropped() noexcept { return {held_, released_}; }

  mutable std::mutex mutex_;
  std::condition_variable idle_;
  Stream* stream_ = nullptr;
  std::vector<std::byte> first_;   // the handshake, before all else
  std::size_t first_written_ = 0;  // of these bytes
  Queued queued_;
  WriteBatches batches_;
  OutgoingPayloads payloads_;
  ChunkSize chunk_size_;
  std::vector<Bytes> released_;      // sent payloads, to be given back
  Watches watches_;                  // of frames in queued_, in their order
  std::uint64_t appended_ = 0;       // bytes of frames, in all
  std::uint64_t taken_ = 0;          // of these, in batches
  std::uint64_t written_bytes_ = 0;  // by all streams
  std::atomic<std::uint64_t> received_{0};
  HeldBytes held_;
  enum class State : std::uint8_t { handshake, open, closed } state_ = State::handshake;
  // none: nobody writes. writing: a thread is inside try_write. blocked: the stream has to become
  // writable. failed: the stream is of no more use.
  enum class Writer : std::uint8_t { none, writing, blocked, failed };
  std::atomic<Writer> writer_{Writer::none};  // changed with the lock
  std::error_code error_;
};

}  // namespace batchrpc
