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

/// Frames that leave in one write, and the chunk behind them.
struct WriteBatch {
  std::vector<std::byte> frames;  ///< the header of the chunk included
  std::optional<PayloadChunk> chunk;
  std::uint64_t count = 0;  ///< of reliable frames
  std::uint64_t last = 0;   ///< of all reliable frames that were taken, with these
  HeldBytes::Part held;     ///< what is held no longer when the batch is dropped

  [[nodiscard]] std::size_t size() const {
    return frames.size() + (chunk ? chunk->bytes.size() + chunk->padding : 0);
  }
};

/// The batches of an output queue: kept until the peer acknowledges them, being written, or to be
/// written. On another stream they are written again from where the peer says. Not thread-safe: the
/// queue locks.
class WriteBatches {
 public:
  /// What a dropped batch leaves behind.
  struct Dropped {
    HeldBytes& held;
    std::vector<Bytes>& payloads;
  };

  /// An empty buffer for the frames of a batch, perhaps one that was used before.
  [[nodiscard]] std::vector<std::byte> take_spare();
  void give_spare(std::vector<std::byte>&& buffer);
  /// Appends a batch, which is to be written after the others. Returns it.
  WriteBatch& add(WriteBatch&& batch);

  [[nodiscard]] bool has_unwritten() const noexcept { return next_ < batches_.size(); }
  /// What is left of the batch that is to be written, as at most three buffers.
  using Buffers = std::array<std::span<const std::byte>, 3>;
  std::span<const std::span<const std::byte>> unwritten(Buffers& buffers) const;
  /// The stream has taken so many bytes more of that batch.
  void advance(std::size_t bytes, Dropped dropped);

  /// The peer has received so many reliable frames. False when fewer have left.
  bool acknowledge(std::uint64_t received, Dropped dropped);
  /// Goes back to the first frame that the peer has not received. False when the peer says more
  /// than have left, or less than it has acknowledged.
  bool rewind(std::uint64_t received, Dropped dropped);
  /// Everything is to be written again, from the beginning of the first batch that is kept.
  void restart() noexcept;
  /// Moves all batches to `batches`, to be destroyed without the queue's lock.
  void clear(std::deque<WriteBatch>& batches);
  /// Frees spare buffers that are larger than `kept` bytes, and all but one.
  void trim(std::size_t kept);

  /// The bytes that are to be written, and those that are kept until they are acknowledged.
  [[nodiscard]] std::size_t unwritten_bytes() const;
  [[nodiscard]] std::size_t kept_bytes() const;
  /// How many reliable frames were taken that the peer has not acknowledged.
  [[nodiscard]] std::uint64_t unacknowledged() const noexcept { return sequence_ - acknowledged_; }

 private:
  void drop_at(std::size_t index, Dropped dropped);
  void drop_acknowledged(Dropped dropped);

  std::deque<WriteBatch> batches_;
  std::size_t next_ = 0;                       // the first that was not written as a whole
  std::size_t written_ = 0;                    // bytes of that one
  std::uint64_t sequence_ = 0;                 // reliable frames, in all batches so far
  std::uint64_t acknowledged_ = 0;             // of these
  std::vector<std::vector<std::byte>> spare_;  // empty buffers
};

/// Appends what is left of `bytes` behind the first `skip` bytes to `buffers`, and lessens `skip`.
void offer_rest(std::span<const std::byte> bytes, std::size_t& skip, WriteBatches::Buffers& buffers,
                std::size_t& count);

}  // namespace batchrpc
