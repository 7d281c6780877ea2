#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "batchrpc/base/export.hpp"

namespace batchrpc {

/// Bytes with shared ownership: a received payload, or something to be sent without a copy. Copying
/// a `Bytes` shares the memory. Memory made here is aligned to 64 bytes.
class Bytes {
 public:
  /// Of memory made here, and of received payloads; in bytes.
  static constexpr std::size_t kAlignment = 64;

  Bytes() noexcept = default;

  /// Bytes inside memory that `owner` keeps alive; with a null owner, memory that the caller keeps
  /// alive and unchanged until the call that it is given to has completed.
  Bytes(std::shared_ptr<const void> owner, std::span<const std::byte> bytes) noexcept
      : owner_(std::move(owner)), data_(bytes.data()), size_(bytes.size()) {}

  /// `size` bytes, not initialised, to be written through `mutable_data()` before they are shared.
  [[nodiscard]] BATCHRPC_EXPORT static Bytes allocate(std::size_t size);

  /// The same bytes in memory of their own.
  [[nodiscard]] static Bytes copy(std::span<const std::byte> bytes) {
    Bytes result = allocate(bytes.size());
    if (!bytes.empty()) std::memcpy(result.mutable_data(), bytes.data(), bytes.size());
    return result;
  }

  /// The memory: it stays for as long as this or a copy of it does.
  /// @{
  [[nodiscard]] const std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::span<const std::byte> span() const noexcept { return {data_, size_}; }
  /// @}
  /// Who keeps the memory alive; null where the caller does.
  [[nodiscard]] const std::shared_ptr<const void>& owner() const noexcept { return owner_; }

  /// For whoever fills what allocate() made, and for the sole user of a received payload.
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
