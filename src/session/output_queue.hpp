#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/transport/stream.hpp"
#include "batchrpc/wire/encoder.hpp"

namespace batchrpc {

/// Is told when a frame is given to the stream.
class FrameWatch {
 public:
  virtual ~FrameWatch() = default;
  /// Once, on the thread that is about to write; without a lock.
  virtual void taken() noexcept = 0;
};

/// What a session has yet to send, over one stream after the other. Frames that are appended while
/// a write is under way leave together in the next one, a round; large payloads go in chunks
/// between the frames, so that a small call overtakes them. What was written is kept, payloads
/// included, until the peer has acknowledged it: on the next stream it is sent again from where the
/// peer says that the last one ended. Both sides count the reliable frames, so that none has a
/// number. See docs/decisions/0015. Thread-safe.
class OutputQueue {
 public:
  /// What a frame, and the inline payloads behind it, take of the queue's bytes.
  struct Place {
    std::uint64_t begin = 0;
    std::uint64_t size = 0;
  };

  /// Appends a finished frame, followed by `payloads`: those that it declares as inline are copied,
  /// others are kept and sent in chunks. Before open(), frames wait.
  Place append(std::span<const Word> frame, std::uint64_t call, bool of_reply,
               std::vector<Bytes>&& payloads);
  /// The same by who holds mutex().
  Place append_locked(std::span<const Word> frame, std::uint64_t call, bool of_reply,
                      std::vector<Bytes>&& payloads);
  /// Tells `watch` when the frame leaves; drops it when it never will. By who holds mutex().
  void watch_locked(Place place, std::shared_ptr<FrameWatch> watch) {
    watches_.push_back({place, std::move(watch)});
  }
  /// Takes the frame of a call back, unless it has been taken to be written: then false. It leaves
  /// without effect; its payloads are moved to `payloads`. By who holds mutex().
  bool retract_locked(Place place, std::vector<Bytes>& payloads);
  /// Has what is left of a call's payloads wait; the chunk that is being written leaves. Or has it
  /// go on, also beyond wire::kEagerBytes. Nothing happens where none is left. By who holds
  /// mutex().
  void pause_locked(std::uint64_t call);
  void resume_locked(std::uint64_t call);
  /// Moves the payloads of a call that have not been taken to be written as a whole to `payloads`:
  /// the rest never leaves. False when none is left. By who holds mutex().
  bool cut_off_locked(std::uint64_t call, std::vector<Bytes>& payloads);
  /// Guards the queue; and what must change in one step with it. Held for moments only, never
  /// during a write.
  [[nodiscard]] std::mutex& mutex() noexcept { return mutex_; }

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
  [[nodiscard]] bool is_blocked() const;
  /// The same by who holds mutex().
  [[nodiscard]] bool is_blocked_locked() const noexcept { return blocked_; }

  /// Destroys payloads that were sent: their memory may have the user's deleter, which may do
  /// anything. So nobody calls this who has writing on this queue to do or to arrange.
  void give_back();

  /// What the stream has yet to take, but for payloads that wait; those that wait for the peer's
  /// credit; those that it has told to; what the stream has taken that may still be lost; and what
  /// is kept until it is acknowledged. Zero when it is closed.
  [[nodiscard]] std::size_t queued_bytes() const;
  [[nodiscard]] std::size_t unanswered_bytes() const;
  [[nodiscard]] std::size_t paused_bytes() const;
  [[nodiscard]] std::size_t unconfirmed_bytes() const;
  [[nodiscard]] std::size_t kept_bytes() const;
  /// What all streams have taken; and how many reliable frames have left that the peer has not
  /// acknowledged.
  [[nodiscard]] std::uint64_t written_bytes() const;
  [[nodiscard]] std::uint64_t unacknowledged() const;
  /// What lies here of calls and of replies, frames and payloads: queued, being written, or kept
  /// until it is acknowledged. A payload counts as a whole until all of it is. Those that wait
  /// (pause_locked) count apart. By who holds mutex(), but for replies.
  /// @{
  [[nodiscard]] std::uint64_t held_calls_locked() const noexcept { return held_calls_; }
  [[nodiscard]] std::uint64_t held_paused_locked() const noexcept { return held_paused_; }
  [[nodiscard]] std::uint64_t held_replies() const noexcept {
    return held_replies_.load(std::memory_order_relaxed);
  }
  /// @}
  [[nodiscard]] std::error_code error() const;
  /// Gives memory back that a burst has left behind.
  void trim();

 private:
  // Of calls, and of replies, in bytes.
  struct Held {
    std::uint64_t calls = 0;
    std::uint64_t replies = 0;
  };

  struct Chunk {
    Bytes owner;
    std::span<const std::byte> bytes;
    std::size_t padding = 0;
  };

  // What leaves in one go.
  struct WriteBatch {
    std::vector<std::byte> frames;  // and the header of its chunk
    std::optional<Chunk> chunk;
    std::uint64_t count = 0;  // of reliable frames
    std::uint64_t last = 0;   // of all that were taken, with these
    Held held;                // what is let go with it
    [[nodiscard]] std::size_t size() const {
      return frames.size() + (chunk ? chunk->bytes.size() + chunk->padding : 0);
    }
  };

  struct LargePayloads {
    std::uint64_t call = 0;
    bool of_reply = false;
    std::vector<Bytes> payloads;
    std::size_t index = 0;    // of the payload that is being sent
    std::size_t offset = 0;   // and how much of it is gone
    std::uint64_t bytes = 0;  // of all payloads
    bool answered = false;    // with a credit
    bool skip_what_is_sent();
    [[nodiscard]] std::size_t rest() const;
  };

  // On a slow stream a call behind a chunk is not to wait for long; on a fast one the chunk's own
  // system call is not to show.
  static constexpr std::size_t kChunkStep = 16 * 1024;  // and the smallest
  static constexpr std::size_t kFirstChunkBytes = 256 * 1024;
  static constexpr std::size_t kMaxChunkBytes = 1024 * 1024;

  struct Watched {
    Place place;
    std::shared_ptr<FrameWatch> watch;
  };

  using Buffers = std::array<std::span<const std::byte>, 3>;

  Flushed write_out(std::unique_lock<std::mutex>& lock);
  bool fill();
  bool take_batch();
  [[nodiscard]] std::vector<std::shared_ptr<FrameWatch>> take_watches();
  std::span<const std::span<const std::byte>> buffers_to_write(Buffers& buffers) const;
  template <class Calls>
  static std::optional<LargePayloads> take(Calls& from, std::uint64_t call);
  std::optional<LargePayloads> take(std::uint64_t call);
  template <class Calls>
  static std::size_t rest_of(const Calls& all);
  void take_chunk(WriteBatch& round);
  void fit_chunks(std::size_t taken, bool blocked);
  [[nodiscard]] std::size_t eager_left(const LargePayloads& sender) const;
  void release(LargePayloads sent);
  void hold(const Held& more);
  void let_go(const Held& held);
  void advance(std::size_t bytes);
  void drop_at(std::size_t index);
  void drop_acknowledged();
  void wait_for_writer(std::unique_lock<std::mutex>& lock);

  mutable std::mutex mutex_;
  std::condition_variable idle_;
  Stream* stream_ = nullptr;
  std::vector<std::byte> first_;               // the handshake, before all else
  std::vector<std::byte> queued_;              // leaves in the next round
  std::size_t last_frame_ = 0;                 // where its last frame begins
  std::uint64_t queued_count_ = 0;             // of its reliable frames
  Held queued_held_;                           // what goes into the next round's
  std::deque<WriteBatch> batches_;             // kept, or to be written
  std::size_t next_ = 0;                       // the first of these that was not written as a whole
  std::size_t written_ = 0;                    // of first_, or of that round
  std::vector<std::vector<std::byte>> spare_;  // empty buffers
  std::deque<LargePayloads> large_;            // each sends a chunk in turn
  std::size_t chunk_bytes_ = kFirstChunkBytes;  // of those to come, at the most
  std::size_t at_once_ = 0;                     // written since the stream blocked, or all was sent
  std::vector<LargePayloads> unanswered_;       // wait for a credit, since so much of them has left
  std::vector<LargePayloads> paused_;           // the peer does not want them yet
  std::vector<Bytes> released_;                 // sent; to be given back
  std::vector<Watched> watches_;                // of frames in queued_, in their order
  std::uint64_t appended_ = 0;                  // bytes of frames, in all
  std::uint64_t taken_ = 0;                     // of these, in rounds
  std::uint64_t sequence_ = 0;                  // reliable frames, in rounds
  std::uint64_t acknowledged_ = 0;              // of these
  std::uint64_t written_bytes_ = 0;             // by all streams
  std::atomic<std::uint64_t> received_{0};
  std::uint64_t held_calls_ = 0;
  std::uint64_t held_paused_ = 0;
  std::atomic<std::uint64_t> held_replies_{0};  // changed with the lock
  bool open_ = false;
  bool closed_ = false;
  bool busy_ = false;         // a writer is at work, or waits for the stream to become writable
  bool blocked_ = false;      // it waits
  bool writing_now_ = false;  // a thread is inside try_write
  std::error_code error_;
};

}  // namespace batchrpc
