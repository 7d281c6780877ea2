#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

#include "batchrpc/base/bytes.hpp"
#include "batchrpc/transport/stream.hpp"
#include "batchrpc/wire/encoder.hpp"

namespace batchrpc {

/// What one connection has yet to send. Frames that are appended while a write is under way leave
/// together in the next one; large payloads go in chunks between the frames, so that a small call
/// overtakes them. Thread-safe.
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
  /// Takes the frame of a call back, unless it has been taken to be written: then false. It leaves
  /// without effect; its payloads are moved to `payloads`. By who holds mutex().
  bool retract_locked(Place place, std::vector<Bytes>& payloads);
  /// Has what is left of a call's payloads wait, or go on; the chunk that is being written leaves.
  /// Nothing happens where none is left. By who holds mutex().
  void pause_locked(std::uint64_t call);
  void resume_locked(std::uint64_t call);
  /// Moves the payloads of a call that have not been taken to be written as a whole to `payloads`:
  /// the rest never leaves. False when none is left. By who holds mutex().
  bool cut_off_locked(std::uint64_t call, std::vector<Bytes>& payloads);
  /// Whether the frame there has left, or may yet. By who holds mutex().
  [[nodiscard]] bool may_leave_locked(Place place) const {
    return place.begin < taken_ || !closed_;
  }
  /// Guards the queue; and what must change in one step with it. Held for moments only, never
  /// during a write.
  [[nodiscard]] std::mutex& mutex() noexcept { return mutex_; }

  /// Appends a frame that goes even before open(): the handshake.
  void append_first(std::span<const Word> frame);

  /// Lets the frames that wait go. `stream` outlives the queue's use.
  void attach(Stream* stream);
  void open();
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
  /// The same, by whoever was told `blocked` before, when the stream is writable again.
  Flushed flush_blocked();

  /// Destroys payloads that were sent: their memory may have the user's deleter, which may do
  /// anything. So nobody calls this who has writing on this queue to do or to arrange.
  void give_back();

  /// What the stream has yet to take, but for payloads that wait; those; and what it has taken that
  /// may still be lost. Zero when it takes no more.
  [[nodiscard]] std::size_t queued_bytes() const;
  [[nodiscard]] std::size_t paused_bytes() const;
  [[nodiscard]] std::size_t unconfirmed_bytes() const;
  [[nodiscard]] std::error_code error() const;
  /// Gives memory back that a burst has left behind.
  void trim();

 private:
  struct Chunk {
    Bytes owner;
    std::span<const std::byte> rest;
    std::size_t padding = 0;
  };

  struct LargePayloads {
    std::uint64_t call = 0;
    bool of_reply = false;
    std::vector<Bytes> payloads;
    std::size_t index = 0;   // of the payload that is being sent
    std::size_t offset = 0;  // and how much of it is gone
    bool skip_what_is_sent();
    [[nodiscard]] std::size_t rest() const;
  };

  Flushed write_out(std::unique_lock<std::mutex>& lock);
  bool fill();
  static std::optional<LargePayloads> take(std::deque<LargePayloads>& from, std::uint64_t call);
  void take_chunk();
  void release(LargePayloads sent);
  void advance(std::size_t bytes);

  mutable std::mutex mutex_;
  std::condition_variable idle_;
  Stream* stream_ = nullptr;
  std::vector<std::byte> held_;       // frames before open()
  std::vector<std::byte> queued_;     // leaves in the next round
  std::vector<std::byte> writing_;    // this round's frames, and the header of its chunk
  std::size_t written_ = 0;           // of writing_
  std::optional<Chunk> chunk_;        // follows writing_
  std::deque<LargePayloads> large_;   // each sends a chunk in turn
  std::deque<LargePayloads> paused_;  // the peer does not want them yet
  std::vector<Bytes> released_;       // sent; to be given back
  std::uint64_t appended_ = 0;        // bytes of frames, in all
  std::uint64_t taken_ = 0;           // of these, to be written
  bool open_ = false;
  bool closed_ = false;
  bool busy_ = false;         // a writer is at work, or waits for the stream to become writable
  bool writing_now_ = false;  // a thread is inside try_write
  std::error_code error_;
};

}  // namespace batchrpc
