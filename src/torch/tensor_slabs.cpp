#include "torch/tensor_slabs.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <atomic>

namespace batchrpc::detail {

TensorSlab::TensorSlab(std::size_t bytes_of_row, std::size_t rows, bool pinned)
    : row_bytes(bytes_of_row), capacity(rows), is_pinned(pinned) {
  if (pinned) {
    const auto options = at::TensorOptions().dtype(at::kByte).pinned_memory(true);
    pinned_memory = at::empty({static_cast<std::int64_t>(row_bytes * rows)}, options);
    data = static_cast<std::byte*>(pinned_memory.data_ptr());
  } else {
    memory = Bytes::allocate(row_bytes * rows);
    data = memory.mutable_data();
  }
}

TensorSlabs::Slot TensorSlabs::take(std::size_t row_bytes, std::size_t rows, bool pinned) {
  const std::size_t most =
      std::max<std::size_t>(1, kMostBytes / std::max<std::size_t>(1, row_bytes));
  const std::size_t capacity = std::min(rows, most);
  const std::lock_guard lock(mutex_);
  const auto fits = [&](const std::shared_ptr<TensorSlab>& slab) {
    return slab->row_bytes == row_bytes && slab->capacity == capacity && slab->is_pinned == pinned;
  };
  // The one in use, else one that nobody uses.
  auto at = std::find_if(slabs_.rbegin(), slabs_.rend(), [&](const auto& slab) {
    return fits(slab) && !slab->closed && slab->used < slab->capacity;
  });
  if (at == slabs_.rend()) {
    at = std::find_if(slabs_.rbegin(), slabs_.rend(),
                      [&](const auto& slab) { return fits(slab) && slab.use_count() == 1; });
    if (at != slabs_.rend()) {
      std::atomic_thread_fence(std::memory_order_acquire);  // after who let go of it
      (*at)->used = 0;
      (*at)->closed = false;
    }
  }
  if (at != slabs_.rend()) return {*at, (*at)->used++};
  // Those that others use are only forgotten.
  if (slabs_.size() >= kKept) slabs_.erase(slabs_.begin());
  slabs_.emplace_back(new TensorSlab(row_bytes, capacity, pinned), TensorSlab::Deleter{});
  slabs_.back()->slabs = weak_from_this();
  return {slabs_.back(), slabs_.back()->used++};
}

void TensorSlabs::batch_taken(TensorSlab& slab, std::size_t first, std::size_t count) {
  const std::lock_guard lock(mutex_);
  if (first + 2 * count > slab.capacity) slab.closed = true;
}

bool TensorSlabs::extend(TensorSlab& slab, std::size_t first, std::size_t count) {
  const std::lock_guard lock(mutex_);
  if (slab.used != first || first + count > slab.capacity) return false;
  slab.used += count;
  return true;
}

}  // namespace batchrpc::detail
