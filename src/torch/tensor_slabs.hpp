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

/// Memory for the rows of a batch, one behind the other; in pinned memory for a GPU.
struct TensorSlab {
  /// By which it is known among the owners of bytes.
  struct Deleter {
    void operator()(const TensorSlab* slab) const noexcept { delete slab; }
  };

  /// Bytes of slabs that no batch has been taken from.
  using Reserved = std::shared_ptr<std::atomic<std::size_t>>;

  /// What its rows need.
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
  /// Counts it among the reserved, or no more; under the lock of its slabs.
  /// @{
  [[nodiscard]] bool is_reserved() const noexcept { return is_reserved_; }
  void reserve() noexcept;
  void release() noexcept;
  /// @}
  [[nodiscard]] std::byte* slot(std::size_t index) const noexcept {
    return data + index * row_bytes;
  }

  const std::size_t row_bytes;
  const std::size_t capacity;  // rows
  const bool is_pinned;
  at::Tensor pinned_memory;
  Bytes memory;
  std::byte* data = nullptr;
  std::weak_ptr<TensorSlabs> slabs;  // that it is of

  // Under the lock of its slabs:
  std::size_t used = 0;  // slots that were given away
  bool closed = false;   // gives no more

 private:
  const Reserved reserved_;
  bool is_reserved_ = false;
};

/// The slabs that rows of one batcher are received into. A slab is used anew when nobody else
/// refers to it: no row, no batch that its handler keeps. Thread-safe.
class TensorSlabs : public std::enable_shared_from_this<TensorSlabs> {
 public:
  struct Slot {
    std::shared_ptr<TensorSlab> slab;
    std::size_t index = 0;
  };
  /// The next free slot for such a row, in slabs of at most `rows`. Rows that wait, of however many
  /// kinds, reserve about `limit` bytes at the most: beyond that, each lies alone.
  [[nodiscard]] Slot take(const TensorSlab::Kind& kind, std::size_t rows, std::size_t limit);

  /// Slots [first, first + count) make a batch. If as many more would not fit, the next row begins
  /// a new slab, so that the next batch is in one piece, too.
  void batch_taken(TensorSlab& slab, std::size_t first, std::size_t count);
  /// Takes the `count` slots from `first` on, if they are the next free ones.
  [[nodiscard]] bool extend(TensorSlab& slab, std::size_t first, std::size_t count);

 private:
  [[nodiscard]] std::shared_ptr<TensorSlab> find_usable(const TensorSlab::Kind& kind,
                                                        std::size_t capacity, std::size_t limit);
  void keep(std::shared_ptr<TensorSlab> slab, std::size_t limit);

  // Of a kind, one is filled while another is used. Of all kinds those are kept whose rows gather,
  // and of the others as many as have no more than their share of the limit.
  static constexpr std::size_t kKept = 2;
  static constexpr std::size_t kMostKept = 64;
  static constexpr std::size_t kShareOfKept = 8;

  std::mutex mutex_;
  std::vector<std::shared_ptr<TensorSlab>> slabs_;  // the latest last
  const TensorSlab::Reserved reserved_ = std::make_shared<std::atomic<std::size_t>>(0);
};

}  // namespace batchrpc::detail
