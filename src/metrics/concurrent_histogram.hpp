#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/histogram_layout.hpp"
#include "batchrpc/base/histogram.hpp"

namespace batchrpc {

/// A Histogram that any thread counts in, without a lock: its buckets are atomic, and lie in pages
/// of an octave each, which are made when something first comes into them. No page goes before the
/// whole does. Counting costs one atomic addition for the bucket and one for the sum.
class ConcurrentHistogram {
 public:
  ConcurrentHistogram() = default;
  ~ConcurrentHistogram();
  ConcurrentHistogram(const ConcurrentHistogram&) = delete;
  ConcurrentHistogram& operator=(const ConcurrentHistogram&) = delete;

  /// Counts a number. Thread-safe.
  void add(std::uint64_t value) noexcept {
    if (std::atomic<std::uint64_t>* const bucket = bucket_of(value)) {
      sum_.fetch_add(value, std::memory_order_relaxed);
      bucket->fetch_add(1, std::memory_order_release);
    }
  }
  /// The same, cheaper, by one thread at a time; others may look.
  void add_alone(std::uint64_t value) noexcept {
    if (std::atomic<std::uint64_t>* const bucket = bucket_of(value)) {
      sum_.store(sum_.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
      bucket->store(bucket->load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }
  }

  /// What has been counted so far; each bucket for itself, if others count meanwhile. Thread-safe.
  [[nodiscard]] Histogram snapshot() const;

 private:
  struct Page {
    std::array<std::atomic<std::uint64_t>, histogram_layout::kHalf> counts{};
  };
  static constexpr std::size_t kPages = histogram_layout::kBuckets / histogram_layout::kHalf;

  // Null: there is no memory for its page.
  std::atomic<std::uint64_t>* bucket_of(std::uint64_t value) noexcept {
    const std::size_t index = histogram_layout::index_of(value);
    Page* page = pages_[index / histogram_layout::kHalf].load(std::memory_order_acquire);
    if (page == nullptr) [[unlikely]] {
      page = make_page(index / histogram_layout::kHalf);
      if (page == nullptr) return nullptr;
    }
    return &page->counts[index % histogram_layout::kHalf];
  }
  Page* make_page(std::size_t number) noexcept;

  std::atomic<std::uint64_t> sum_{0};
  std::array<std::atomic<Page*>, kPages> pages_{};
};

}  // namespace batchrpc
