#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace batchrpc {

/// Memory for bytes of which the sender has announced the number. It grows with the bytes that have
/// come, so an announcement alone costs almost nothing. It is not filled with zeros. Aligned for
/// any fundamental type.
class GrowingBytes {
 public:
  /// The least memory that is taken at once, if so much is announced.
  static constexpr std::size_t kLeast = std::size_t{64} * 1024;

  [[nodiscard]] std::byte* data() const noexcept { return memory_.get(); }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

  /// Makes room for `needed` bytes, of at most `most`, and keeps the first `filled`. Doubles the
  /// memory at least. Throws std::bad_alloc and leaves all as it was.
  void grow(std::size_t filled, std::size_t needed, std::size_t most) {
    if (needed <= capacity_) return;
    const std::size_t capacity = std::min(most, std::max({needed, 2 * capacity_, kLeast}));
    auto larger = std::make_unique_for_overwrite<std::byte[]>(capacity);
    std::copy_n(memory_.get(), filled, larger.get());
    memory_ = std::move(larger);
    capacity_ = capacity;
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::size_t capacity_ = 0;
};

}  // namespace batchrpc
