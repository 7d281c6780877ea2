#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>

namespace batchrpc::detail {

/// A queue of bytes. It grows as needed, and frees its memory when it is empty and was large.
class ByteRing {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  void push(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    if (size_ + bytes.size() > room_) grow(size_ + bytes.size());
    const std::size_t at = (head_ + size_) & (room_ - 1);
    const std::size_t first = std::min(bytes.size(), room_ - at);
    std::memcpy(memory_.get() + at, bytes.data(), first);
    if (first < bytes.size())
      std::memcpy(memory_.get(), bytes.data() + first, bytes.size() - first);
    size_ += bytes.size();
  }

  /// Removes as many bytes as `to` has; the queue must have that many.
  void pop(std::span<std::byte> to) noexcept {
    if (to.empty()) return;
    const std::size_t first = std::min(to.size(), room_ - head_);
    std::memcpy(to.data(), memory_.get() + head_, first);
    if (first < to.size()) std::memcpy(to.data() + first, memory_.get(), to.size() - first);
    head_ = (head_ + to.size()) & (room_ - 1);
    size_ -= to.size();
    if (size_ == 0 && room_ > kKept) clear();
  }

  /// Removes the newest `count` bytes; the queue must have that many.
  void drop_last(std::size_t bytes) noexcept { size_ -= bytes; }

  void clear() noexcept {
    memory_.reset();
    room_ = head_ = size_ = 0;
  }

 private:
  static constexpr std::size_t kKept = 16 * 1024;

  void grow(std::size_t size) {
    const std::size_t room = std::bit_ceil(std::max<std::size_t>(size, 1024));
    std::unique_ptr<std::byte[]> memory(new std::byte[room]);  // not initialised
    const std::size_t kept = size_;
    if (kept > 0) {
      const std::size_t first = std::min(kept, room_ - head_);
      std::memcpy(memory.get(), memory_.get() + head_, first);
      if (first < kept) std::memcpy(memory.get() + first, memory_.get(), kept - first);
    }
    memory_ = std::move(memory);
    room_ = room;
    head_ = 0;
  }

  std::unique_ptr<std::byte[]> memory_;
  std::size_t room_ = 0;  // a power of two
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

}  // namespace batchrpc::detail
