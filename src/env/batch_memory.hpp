#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "batchrpc/base/bytes.hpp"
#include "session/payload_memory.hpp"

namespace batchrpc::env {

/// Where the observations of groups are received, so that those of one batch lie side by side. No
/// place is given twice: what was to come there may be on its way yet. Not thread-safe.
class BatchMemory {
 public:
  explicit BatchMemory(std::shared_ptr<PayloadMemory> memory) : memory_(std::move(memory)) {}

  /// A place in the block of a buffer, of which group `index` of `count` has always the same: for
  /// batches of all workers. Empty where it is given already, and where the block that others are
  /// received into has other places.
  [[nodiscard]] Bytes place_in(std::size_t buffer, std::size_t index, std::size_t count,
                               std::size_t bytes);
  /// The block of that buffer is in a batch: the next place is in a new one.
  void taken(std::size_t buffer) noexcept;

  /// The next place in the order of arrival; of a new block of `count` places when the one before
  /// is full or has others.
  [[nodiscard]] Bytes next_place(std::size_t count, std::size_t bytes);

 private:
  struct Block {
    Bytes memory;
    std::size_t place_bytes = 0;
    std::vector<bool> given;  // of each place
  };
  [[nodiscard]] Block make(std::size_t count, std::size_t bytes) const;

  const std::shared_ptr<PayloadMemory> memory_;
  std::vector<Block> of_buffers_;
  Block of_arrivals_;
  std::size_t arrivals_ = 0;  // places of it that are given
};

/// One piece of memory of `count` pieces of `bytes`; null ones are zeros. Without a copy where they
/// are one behind the other in one block.
[[nodiscard]] Bytes join(const std::vector<Bytes>& places, std::size_t bytes,
                         PayloadMemory& memory);

}  // namespace batchrpc::env
