#pragma once

#include <ATen/core/Tensor.h>

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

  TensorSlab(std::size_t bytes_of_row, std::size_t rows, bool pinned);

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
};

/// The slabs that rows of one batcher are received into. A slab is used anew when nobody else
/// refers to it: no row, no batch that its handler keeps. Thread-safe.
class TensorSlabs : public std::enable_shared_from_this<TensorSlabs> {
 public:
  struct Slot {
    std::shared_ptr<TensorSlab> slab;
    std::size_t index = 0;
  };
  /// The next free slot for rows of that many bytes, in slabs of at most so many rows.
  [[nodiscard]] Slot take(std::size_t row_bytes, std::size_t rows, bool pinned);

  /// Slots [first, first + count) make a batch. If as many more would not fit, the next row begins
  /// a new slab, so that the next batch is in one piece, too.
  void batch_taken(TensorSlab& slab, std::size_t first, std::size_t count);
  /// Takes the `count` slots from `first` on, if they are the next free ones.
  [[nodiscard]] bool extend(TensorSlab& slab, std::size_t first, std::size_t count);

 private:
  static constexpr std::size_t kMostBytes = std::size_t{1} << 30;  // of a slab of several rows
  static constexpr std::size_t kKept = 2;  // one is filled while another is used

  std::mutex mutex_;
  std::vector<std::shared_ptr<TensorSlab>> slabs_;  // the latest last
};

}  // namespace batchrpc::detail
