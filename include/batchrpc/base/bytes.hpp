#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "batchrpc/base/export.hpp"

namespace batchrpc {

/// Bytes with shared ownership: a received payload, or data to send without a copy. Copying a
/// `Bytes` shares the memory. Memory allocated here is aligned to 64 bytes.
class Bytes {
 public:
  /// The alignment, in bytes, of memory allocated here and of received payloads.
  static constexpr std::size_t kAlignment = 64;

  Bytes() noexcept = default;

  /// Refers to bytes inside memory that `owner` keeps alive. With a null owner, the caller must
  /// keep the memory alive and unchanged until the call that uses it has completed.
  Bytes(std::shared_ptr<const void> owner, std::span<const std::byte> bytes) noexcept
      : owner_(std::move(owner)), data_(bytes.data()), size_(bytes.size()) {}

  /// Allocates `size` uninitialised bytes. Write them through `mutable_data()` before you share
  /// them.
  [[nodiscard]] BATCHRPC_EXPORT static Bytes allocate(std::size_t size);

  /// Copies the bytes into memory of their own.
  [[nodiscard]] static Bytes copy(std::span<const std::byte> bytes) {
    Bytes result = allocate(bytes.size());
    if (!bytes.empty()) std::memcpy(result.mutable_data(), bytes.data(), bytes.size());
    return result;
  }

  /// The memory. It stays valid as long as this object or a copy of it exists.
  /// @{
  [[nodiscard]] const std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::span<const std::byte> span() const noexcept { return {data_, size_}; }
  /// @}
  /// The object that keeps the memory alive; null if the caller does.
  [[nodiscard]] const std::shared_ptr<const void>& owner() const noexcept { return owner_; }

  /// The memory for writing: to fill what allocate() returned, or for the only user of a received
  /// payload.
  [[nodiscard]] std::byte* mutable_data() const noexcept { return const_cast<std::byte*>(data_); }

  friend bool operator==(const Bytes& a, const Bytes& b) noexcept {
    return a.size_ == b.size_ && (a.size_ == 0 || std::memcmp(a.data_, b.data_, a.size_) == 0);
  }

 private:
  std::shared_ptr<const void> owner_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// The bytes of `text`.
[[nodiscard]] inline std::span<const std::byte> as_bytes(std::string_view text) noexcept {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace batchrpc
