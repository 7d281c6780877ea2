#include "batchrpc/base/histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace batchrpc {
namespace {

constexpr unsigned kHalfBits = 5;                 // 32 buckets an octave
constexpr std::uint64_t kHalf = 1U << kHalfBits;  // of the first octave that has less than one each
constexpr std::uint64_t kExact = 2 * kHalf;

std::size_t index_of(std::uint64_t value) {
  if (value < kExact) return static_cast<std::size_t>(value);
  const unsigned shift = static_cast<unsigned>(std::bit_width(value)) - kHalfBits - 1;
  return static_cast<std::size_t>(shift * kHalf + (value >> shift));
}

std::uint64_t lowest_of(std::size_t index) {
  if (index < kExact) return index;
  const std::uint64_t shift = index / kHalf - 1;
  return (index - shift * kHalf) << shift;
}

std::uint64_t highest_of(std::size_t index) {
  if (index < kExact) return index;
  return lowest_of(index) + ((std::uint64_t{1} << (index / kHalf - 1)) - 1);
}

}  // namespace

void Histogram::add(std::uint64_t value, std::uint64_t times) {
  const std::size_t index = index_of(value);
  if (index >= counts_.size()) counts_.resize(index + 1);
  counts_[index] += times;
  count_ += times;
  sum_ += value * times;
  max_ = std::max(max_, value);
}

void Histogram::clear() { *this = Histogram(); }

double Histogram::mean() const noexcept {
  return count_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(count_);
}

std::uint64_t Histogram::quantile(double fraction) const {
  if (count_ == 0) return 0;
  const double wanted = std::ceil(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(count_));
  const std::uint64_t rank = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(wanted));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= rank) return std::min(max_, lowest_of(i) + (highest_of(i) - lowest_of(i)) / 2);
  }
  return max_;
}

std::vector<Histogram::Bucket> Histogram::buckets() const {
  std::vector<Bucket> buckets;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] > 0) buckets.push_back({lowest_of(i), highest_of(i), counts_[i]});
  }
  return buckets;
}

}  // namespace batchrpc
