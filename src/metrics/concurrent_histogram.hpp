#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/histogram_layout.hpp"
#include "batchrpc/base/histogram.hpp"

namespace batchrpc {

/// A Histogram that any thread may add to without a lock. Its buckets are atomic and lie in pages
/// of one octave each. A page is created when its first number arrives, and is never freed before
/// the histogram. Adding costs one atomic addition for the bucket and one for the sum.
class ConcurrentHistogram {
 public:
  ConcurrentHistogram() = default;
  ~ConcurrentHistogram();
  ConcurrentHistogram(const ConcurrentHistogram&) = delete;
  ConcurrentHistogram& operator=(const ConcurrentHistogram&) = delete;

  /// Counts `value`. Thread-safe.
  void add(std::uint64_t value) noexcept {
    if (std::atomic<std::uint64_t>* const bucket = bucket_of(value)) {
      sum_.fetch_add(value, std::memory_order_relaxed);
      bucket->fetch_add(1, std::memory_order_release);
    }
  }
  /// The same, but cheaper: only one thread at a time may call it. Other threads may read.
  void add_alone(std::uint64_t value) noexcept {
    if (std::atomic<std::uint64_t>* const bucket = bucket_of(value)) {
      sum_.store(sum_.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
      bucket->store(bucket->load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }
  }

  /// What has been counted so far. Thread-safe. If other threads add at the same time, each bucket
  /// is read on its own.
  [[nodiscard]] Histogram snapshot() const;

 private:
  struct Page {
    std::array<std::atomic<std::uint64_t>, histogram_layout::kHalf> counts{};
  };
  static constexpr std::size_t kPages = histogram_layout::kBuckets / histogram_layout::kHalf;

  // Returns null if there is no memory for the page.
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
