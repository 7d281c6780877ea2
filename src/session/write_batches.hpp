#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "session/held_bytes.hpp"
#include "session/outgoing_payloads.hpp"

namespace batchrpc {

/// Frames that are written at once, and the chunk behind them.
struct WriteBatch {
  std::vector<std::byte> frames;  ///< includes the header of the chunk
  std::size_t begin = 0;          ///< the bytes of `frames` that the peer has
  std::optional<PayloadChunk> chunk;
  std::uint64_t count = 0;  ///< the number of reliable frames in it
  std::uint64_t last = 0;   ///< the number of all reliable frames so far, including these
  HeldBytes::Part held;     ///< the bytes that are released when the batch is dropped

  [[nodiscard]] std::size_t size() const {
    return frames.size() - begin + (chunk ? chunk->bytes.size() + chunk->padding : 0);
  }
};

/// The batches of an output queue. Each is still to be written, being written, or kept until the
/// peer acknowledges it. On another stream they are written again from the position that the peer
/// reports. Not thread-safe: the queue locks.
class WriteBatches {
 public:
  /// Receives the counts and payloads of a dropped batch.
  struct Dropped {
    HeldBytes& held;
    std::vector<Bytes>& payloads;
  };

  /// Returns an empty buffer for the frames of a batch, perhaps a reused one.
  [[nodiscard]] std::vector<std::byte> take_spare();
  void give_spare(std::vector<std::byte>&& buffer);
  /// Appends a batch, which is to be written after the others. Returns it.
  WriteBatch& add(WriteBatch&& batch);

  [[nodiscard]] bool has_unwritten() const noexcept { return next_ < batches_.size(); }
  /// The unwritten rest of the batch that is to be written, in at most three buffers.
  using Buffers = std::array<std::span<const std::byte>, 3>;
  std::span<const std::span<const std::byte>> unwritten(Buffers& buffers) const;
  /// The stream has taken `bytes` more bytes of that batch.
  void advance(std::size_t bytes, Dropped dropped);

  /// The peer has received `received` reliable frames. False when fewer have been sent.
  bool acknowledge(std::uint64_t received, Dropped dropped);
  /// Goes back to the first frame that the peer has not received. False when the peer reports more
  /// than were sent, or fewer than it has acknowledged.
  bool rewind(std::uint64_t received, Dropped dropped);
  /// Everything is to be written again, from the beginning of the first batch that is kept.
  void restart() noexcept;
  /// Moves all batches to `batches`, to be destroyed without the queue's lock.
  void clear(std::deque<WriteBatch>& batches);
  /// Frees spare buffers that are larger than `kept` bytes, and all but one of the others.
  void trim(std::size_t kept);

  /// The bytes that are to be written, and those that are kept until they are acknowledged.
  [[nodiscard]] std::size_t unwritten_bytes() const;
  [[nodiscard]] std::size_t kept_bytes() const;
  /// The number of reliable frames in all batches so far.
  [[nodiscard]] std::uint64_t sent() const noexcept { return sequence_; }
  /// The number of reliable frames that the peer has not acknowledged.
  [[nodiscard]] std::uint64_t unacknowledged() const noexcept { return sequence_ - acknowledged_; }

 private:
  // An index into a deque costs a division, which the usual index 0 does not need.
  [[nodiscard]] const WriteBatch& at(std::size_t index) const {
    return index == 0 ? batches_.front() : batches_[index];
  }
  void drop_at(std::size_t index, Dropped dropped);
  void drop_acknowledged(Dropped dropped);

  std::deque<WriteBatch> batches_;
  std::size_t next_ = 0;            // the first one that is not written completely
  std::size_t written_ = 0;         // the bytes of it that are written
  std::uint64_t sequence_ = 0;      // the number of reliable frames in all batches so far
  std::uint64_t acknowledged_ = 0;  // how many of these the peer has acknowledged
  std::vector<std::vector<std::byte>> spare_;  // empty buffers
};

/// Appends the part of `bytes` behind the first `skip` bytes to `buffers`. Reduces `skip` by the
/// bytes that were skipped.
void offer_rest(std::span<const std::byte> bytes, std::size_t& skip, WriteBatches::Buffers& buffers,
                std::size_t& count);

}  // namespace batchrpc
