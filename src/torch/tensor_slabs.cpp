#include "torch/tensor_slabs.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

namespace batchrpc::detail {

TensorSlab::TensorSlab(const Kind& kind, std::size_t rows, Reserved reserved)
    : row_bytes(kind.row_bytes),
      capacity(rows),
      is_pinned(kind.pinned),
      reserved_(std::move(reserved)) {
  if (is_pinned) {
    const auto options = at::TensorOptions().dtype(at::kByte).pinned_memory(true);
    pinned_memory = at::empty({static_cast<std::int64_t>(bytes())}, options);
    data = static_cast<std::byte*>(pinned_memory.data_ptr());
  } else {
    memory = Bytes::allocate(bytes());
    data = memory.mutable_data();
  }
  reserve();
}

void TensorSlab::reserve() noexcept {
  if (!std::exchange(is_reserved_, true)) *reserved_ += bytes();
}

void TensorSlab::release() noexcept {
  if (std::exchange(is_reserved_, false)) *reserved_ -= bytes();
}

TensorSlabs::Slot TensorSlabs::take(const TensorSlab::Kind& kind, std::size_t rows,
                                    std::size_t limit) {
  const std::size_t fitting = limit / std::max<std::size_t>(1, kind.row_bytes);
  const std::size_t capacity = std::clamp<std::size_t>(fitting, 1, rows);
  const std::lock_guard lock(mutex_);
  if (const auto slab = find_usable(kind, capacity, limit)) {
    slab->reserve();
    return {slab, slab->used++};
  }
  const auto fits = [&] { return *reserved_ + kind.row_bytes * capacity <= limit; };
  if (!fits()) {  // slabs without rows make room
    std::erase_if(slabs_, [](const auto& other) { return other.use_count() == 1; });
  }
  const bool has_room = fits();
  std::shared_ptr<TensorSlab> slab(new TensorSlab(kind, has_room ? capacity : 1, reserved_),
                                   TensorSlab::Deleter{});
  slab->slabs = weak_from_this();
  slab->used = 1;
  if (has_room) keep(slab, limit);
  return {std::move(slab), 0};
}

// The slab that is being filled, else one that is unused; null if there is neither.
std::shared_ptr<TensorSlab> TensorSlabs::find_usable(const TensorSlab::Kind& kind,
                                                     std::size_t capacity, std::size_t limit) {
  const auto fits = [&](const TensorSlab& slab) {
    const bool may_be_reserved = slab.is_reserved() || *reserved_ + slab.bytes() <= limit;
    return slab.kind() == kind && slab.capacity == capacity && may_be_reserved;
  };
  auto at = std::find_if(slabs_.begin(), slabs_.end(), [&](const auto& slab) {
    return fits(*slab) && !slab->closed && slab->used < slab->capacity;
  });
  if (at != slabs_.end()) return *at;
  at = std::find_if(slabs_.begin(), slabs_.end(),
                    [&](const auto& slab) { return fits(*slab) && slab.use_count() == 1; });
  if (at == slabs_.end()) return nullptr;
  std::atomic_thread_fence(std::memory_order_acquire);  // sees what the last user wrote
  (*at)->used = 0;
  (*at)->closed = false;
  return *at;
}

// Adds a slab and drops old ones. Dropped slabs that are in use live on.
void TensorSlabs::keep(std::shared_ptr<TensorSlab> slab, std::size_t limit) {
  slabs_.push_back(std::move(slab));
  // Its rows are waiting, and more of them may come.
  const auto gathers = [](const auto& other) {
    return other->is_reserved() && other.use_count() > 1;
  };
  const TensorSlab::Kind latest = slabs_.back()->kind();
  std::size_t alike = 0;
  std::size_t bytes = 0;
  for (const auto& other : slabs_) {
    if (other->kind() == latest) ++alike;
    if (!gathers(other)) bytes += other->bytes();
  }
  std::erase_if(slabs_, [&](const auto& other) {
    const bool one_more_alike = other->kind() == latest && alike > kKept;
    if (!one_more_alike && (gathers(other) || bytes <= limit / kShareOfKept)) return false;
    if (one_more_alike) --alike;
    if (!gathers(other)) bytes -= other->bytes();
    return true;
  });
  if (slabs_.size() > kMostKept) slabs_.erase(slabs_.begin());
}

void TensorSlabs::batch_taken(TensorSlab& slab, std::size_t first, std::size_t count) {
  const std::lock_guard lock(mutex_);
  slab.release();
  if (first + 2 * count > slab.capacity) slab.closed = true;
}

bool TensorSlabs::extend(TensorSlab& slab, std::size_t first, std::size_t count) {
  const std::lock_guard lock(mutex_);
  if (slab.used != first || first + count > slab.capacity) return false;
  slab.used += count;
  return true;
}

}  // namespace batchrpc::detail
