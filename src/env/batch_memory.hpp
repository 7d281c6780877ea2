#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "batchrpc/base/bytes.hpp"
#include "session/payload_memory.hpp"

namespace batchrpc::env {

/// The memory into which the groups' observations are received, so that those of one batch are
/// adjacent. No place is given out twice: an earlier answer may still be arriving there. Not
/// thread-safe.
class BatchMemory {
 public:
  explicit BatchMemory(std::shared_ptr<PayloadMemory> memory) : memory_(std::move(memory)) {}

  /// Returns a place in the block of a buffer, for batches of all workers. Group `index` of `count`
  /// always has the same place in it. Empty if the place was given out already, or if the current
  /// block has places of another size or number.
  [[nodiscard]] Bytes place_in(std::size_t buffer, std::size_t index, std::size_t count,
                               std::size_t bytes);
  /// A batch has taken the buffer's block: the next place is in a new one.
  void taken(std::size_t buffer) noexcept;

  /// Returns the next place in order of arrival. It begins a new block of `count` places if the
  /// current one is full or has places of another size or number.
  [[nodiscard]] Bytes next_place(std::size_t count, std::size_t bytes);

 private:
  struct Block {
    Bytes memory;
    std::size_t place_bytes = 0;
    std::vector<bool> given;  // for each place
  };
  [[nodiscard]] Block make(std::size_t count, std::size_t bytes) const;

  const std::shared_ptr<PayloadMemory> memory_;
  std::vector<Block> of_buffers_;
  Block of_arrivals_;
  std::size_t arrivals_ = 0;  // places given out
};

/// Joins `count` pieces of `bytes` bytes; null pieces become zeros. Copies nothing if the pieces
/// are adjacent in one block.
[[nodiscard]] Bytes join(const std::vector<Bytes>& places, std::size_t bytes,
                         PayloadMemory& memory);

}  // namespace batchrpc::env
