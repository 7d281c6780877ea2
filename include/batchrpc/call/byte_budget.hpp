#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "batchrpc/base/ref.hpp"

namespace batchrpc::detail {

/// Counts the bytes that the calls of one peer take here, against a limit. It only counts:
/// IncomingCalls asks fits() before it takes a call. Thread-safe.
class ByteBudget final : public RefCounted<ByteBudget> {
 public:
  explicit ByteBudget(std::uint64_t limit) noexcept : limit_(limit) {}

  [[nodiscard]] std::uint64_t limit() const noexcept { return limit_; }
  [[nodiscard]] std::uint64_t used() const noexcept {
    return used_.load(std::memory_order_relaxed);
  }
  /// Whether `bytes` more fit. More than half of the limit fit when at most half is used:
  /// otherwise a call that is larger than the limit would never fit.
  [[nodiscard]] bool fits(std::uint64_t bytes) const noexcept {
    return used() <= (bytes <= limit_ / 2 ? limit_ - bytes : limit_ / 2);
  }

 private:
  friend class ByteCharge;

  const std::uint64_t limit_;
  std::atomic<std::uint64_t> used_{0};
};

/// The bytes that one call takes of a budget, counted as long as this exists. One thread uses it at
/// a time.
class ByteCharge {
 public:
  /// Counts nowhere.
  ByteCharge() noexcept = default;
  /// Will count there. Until set(), `budget` must outlive this; afterwards this keeps it alive.
  explicit ByteCharge(ByteBudget& budget) noexcept : budget_(&budget) {}
  ByteCharge(ByteCharge&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  ByteCharge& operator=(ByteCharge&& other) noexcept {
    release();
    budget_ = std::exchange(other.budget_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }
  ~ByteCharge() { release(); }

  /// Counts `bytes`, in place of what was counted before.
  void set(std::uint64_t bytes) noexcept {
    if (budget_ == nullptr || bytes == bytes_) return;
    if (bytes_ == 0) budget_->add_reference();
    budget_->used_.fetch_add(bytes - bytes_, std::memory_order_relaxed);
    if (std::exchange(bytes_, bytes) != 0 && bytes == 0) budget_->release();
  }
  void release() noexcept {
    if (bytes_ != 0) set(0);
  }

 private:
  ByteBudget* budget_ = nullptr;  // shared while bytes are counted
  std::uint64_t bytes_ = 0;
};

/// The memory that a kept call takes: its message, its payloads, and what describes them.
[[nodiscard]] constexpr std::uint64_t bytes_of_kept_call(std::uint64_t message,
                                                         std::uint64_t payloads,
                                                         std::size_t payload_count) noexcept {
  constexpr std::uint64_t kCall = 768;     // its state, and its places in queues and tables
  constexpr std::uint64_t kPayload = 128;  // its view and its owner
  return kCall + message + payloads + kPayload * payload_count;
}

}  // namespace batchrpc::detail
