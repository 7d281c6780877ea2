#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "batchrpc/base/bytes.hpp"

namespace batchrpc::detail {

class TensorSlabs;

/// Consecutive memory for the rows of a batch; pinned memory if they go to a GPU.
struct TensorSlab {
  /// Identifies slabs among the owners of bytes.
  struct Deleter {
    void operator()(const TensorSlab* slab) const noexcept { delete slab; }
  };

  /// The bytes of slabs of which no batch has been taken yet.
  using Reserved = std::shared_ptr<std::atomic<std::size_t>>;

  /// The memory that its rows need.
  struct Kind {
    std::size_t row_bytes = 0;
    bool pinned = false;
    bool operator==(const Kind&) const = default;
  };

  TensorSlab(const Kind& kind, std::size_t rows, Reserved reserved);
  TensorSlab(const TensorSlab&) = delete;
  TensorSlab& operator=(const TensorSlab&) = delete;
  ~TensorSlab() { release(); }

  [[nodiscard]] Kind kind() const noexcept { return {row_bytes, is_pinned}; }
  [[nodiscard]] std::size_t bytes() const noexcept { return row_bytes * capacity; }
  /// Adds its bytes to the reserved ones, or removes them. Call it under the lock of its slabs.
  /// @{
  [[nodiscard]] bool is_reserved() const noexcept { return is_reserved_; }
  void reserve() noexcept;
  void release() noexcept;
  /// @}
  [[nodiscard]] std::byte* slot(std::size_t index) const noexcept {
    return data + index * row_bytes;
  }

  const std::size_t row_bytes;
  const std::size_t capacity;  // in rows
  const bool is_pinned;
  at::Tensor pinned_memory;
  Bytes memory;
  std::byte* data = nullptr;
  std::weak_ptr<TensorSlabs> slabs;  // the slabs it belongs to

  // Protected by the lock of its slabs:
  std::size_t used = 0;  // slots that were given out
  bool closed = false;   // gives out no more slots

 private:
  const Reserved reserved_;
  bool is_reserved_ = false;
};

/// The slabs into which the rows of one batcher are received. A slab is reused when nothing else
/// refers to it: no row, and no batch that its handler keeps. Thread-safe.
class TensorSlabs : public std::enable_shared_from_this<TensorSlabs> {
 public:
  struct Slot {
    std::shared_ptr<TensorSlab> slab;
    std::size_t index = 0;
  };
  /// The next free slot for such a row, in slabs of at most `rows` rows. Waiting rows of all kinds
  /// reserve at most about `limit` bytes; beyond that each row gets its own memory.
  [[nodiscard]] Slot take(const TensorSlab::Kind& kind, std::size_t rows, std::size_t limit);

  /// Reports that the slots [first, first + count) were taken as a batch. If another batch of that
  /// size would not fit, the next row begins a new slab, so that the next batch is in one piece
  /// too.
  void batch_taken(TensorSlab& slab, std::size_t first, std::size_t count);
  /// Takes the `count` slots from `first` on, if they are the next free ones.
  [[nodiscard]] bool extend(TensorSlab& slab, std::size_t first, std::size_t count);

 private:
  [[nodiscard]] std::shared_ptr<TensorSlab> find_usable(const TensorSlab::Kind& kind,
                                                        std::size_t capacity, std::size_t limit);
  void keep(std::shared_ptr<TensorSlab> slab, std::size_t limit);

  // For each kind, one slab is filled while another is used. Slabs whose rows are still gathering
  // are kept, and others up to their share of the limit.
  static constexpr std::size_t kKept = 2;
  static constexpr std::size_t kMostKept = 64;
  static constexpr std::size_t kShareOfKept = 8;

  std::mutex mutex_;
  std::vector<std::shared_ptr<TensorSlab>> slabs_;  // newest last
  const TensorSlab::Reserved reserved_ = std::make_shared<std::atomic<std::size_t>>(0);
};

}  // namespace batchrpc::detail
