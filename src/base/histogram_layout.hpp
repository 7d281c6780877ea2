#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

/// The buckets of Histogram: one for each number up to 63, and above that 32 for each octave.
namespace batchrpc::histogram_layout {

inline constexpr unsigned kHalfBits = 5;                 // log2(kHalf)
inline constexpr std::uint64_t kHalf = 1U << kHalfBits;  // buckets per octave
inline constexpr std::uint64_t kExact = 2 * kHalf;
/// The number of buckets for all 64-bit numbers.
inline constexpr std::size_t kBuckets = (64 - kHalfBits + 1) * kHalf;

constexpr std::size_t index_of(std::uint64_t value) noexcept {
  const unsigned shift =
      static_cast<unsigned>(std::bit_width(value | (kExact - 1))) - kHalfBits - 1;
  return static_cast<std::size_t>(shift * kHalf + (value >> shift));
}

constexpr std::uint64_t lowest_of(std::size_t index) noexcept {
  if (index < kExact) return index;
  const std::uint64_t shift = index / kHalf - 1;
  return (index - shift * kHalf) << shift;
}

constexpr std::uint64_t highest_of(std::size_t index) noexcept {
  if (index < kExact) return index;
  return lowest_of(index) + ((std::uint64_t{1} << (index / kHalf - 1)) - 1);
}

static_assert(index_of(~std::uint64_t{0}) == kBuckets - 1);

}  // namespace batchrpc::histogram_layout
