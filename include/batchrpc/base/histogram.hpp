#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "batchrpc/base/export.hpp"

namespace batchrpc {

/// Counts whole numbers, such as sizes or nanoseconds, in buckets that grow with the number: up to
/// 63 each has its own, above that a bucket is at most 1/32 of its numbers wide, so that what is
/// read back is off by at most 1.6 %. (The layout of HdrHistogram, with 32 buckets an octave.)
/// Memory grows with the largest number, to at most 16 KiB. Not thread-safe; a copy is a snapshot.
class BATCHRPC_EXPORT Histogram {
 public:
  /// Numbers of one bucket.
  struct Bucket {
    std::uint64_t lowest = 0;   ///< the smallest number that it counts
    std::uint64_t highest = 0;  ///< the largest
    std::uint64_t count = 0;    ///< how many came
  };

  Histogram() = default;
  /// Of counts by bucket, from the lowest on, as the library itself gathers them; the largest
  /// number is then known as the middle of its bucket.
  Histogram(std::vector<std::uint64_t> counts, std::uint64_t sum);

  /// Counts a number, or so many of it.
  void add(std::uint64_t value, std::uint64_t times = 1);
  /// Counts all that `other` has.
  void add(const Histogram& other);
  /// As new.
  void clear();

  /// How many numbers came, their sum, and the largest; 0 when none came.
  /// @{
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t sum() const noexcept { return sum_; }
  [[nodiscard]] std::uint64_t max() const noexcept { return max_; }
  [[nodiscard]] double mean() const noexcept;
  /// @}

  /// The smallest number that at least `fraction` (0 to 1) of the numbers do not exceed, as the
  /// middle of its bucket; 0 when none came.
  [[nodiscard]] std::uint64_t quantile(double fraction) const;

  /// Those that counted something, in order.
  [[nodiscard]] std::vector<Bucket> buckets() const;

 private:
  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0;
  std::uint64_t sum_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace batchrpc
