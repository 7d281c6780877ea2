#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "batchrpc/base/export.hpp"

namespace batchrpc {

/// Counts whole numbers, such as sizes or nanoseconds, in buckets. Each number up to 63 has its own
/// bucket. Above that, a bucket's width is at most 1/32 of its numbers, so that reported values are
/// off by at most 1.6 %. (The layout of HdrHistogram, with 32 buckets per octave.) Memory grows
/// with the largest number, to at most 16 KiB. Not thread-safe; a copy is a snapshot.
class BATCHRPC_EXPORT Histogram {
 public:
  /// One bucket and its count.
  struct Bucket {
    std::uint64_t lowest = 0;   ///< the smallest number of the bucket
    std::uint64_t highest = 0;  ///< the largest number of the bucket
    std::uint64_t count = 0;    ///< how many numbers were counted
  };

  Histogram() = default;
  /// Takes counts by bucket, lowest bucket first, as the library gathers them. The largest number
  /// is then only known as the middle of its bucket.
  Histogram(std::vector<std::uint64_t> counts, std::uint64_t sum);

  /// Counts `value`, `times` times.
  void add(std::uint64_t value, std::uint64_t times = 1);
  /// Adds all counts of `other`.
  void add(const Histogram& other);
  /// Removes all counts.
  void clear();

  /// The number of counted values, their sum, and the largest; 0 if none were counted.
  /// @{
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t sum() const noexcept { return sum_; }
  [[nodiscard]] std::uint64_t max() const noexcept { return max_; }
  [[nodiscard]] double mean() const noexcept;
  /// @}

  /// The smallest number that at least `fraction` (0 to 1) of the counted numbers do not exceed, as
  /// the middle of its bucket; 0 if none were counted.
  [[nodiscard]] std::uint64_t quantile(double fraction) const;

  /// The buckets that are not empty, in ascending order.
  [[nodiscard]] std::vector<Bucket> buckets() const;

 private:
  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0;
  std::uint64_t sum_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace batchrpc
