#include "batchrpc/base/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/histogram_layout.hpp"

namespace batchrpc {

using histogram_layout::highest_of;
using histogram_layout::index_of;
using histogram_layout::lowest_of;

void Histogram::add(std::uint64_t value, std::uint64_t times) {
  const std::size_t index = index_of(value);
  if (index >= counts_.size()) counts_.resize(index + 1);
  counts_[index] += times;
  count_ += times;
  sum_ += value * times;
  max_ = std::max(max_, value);
}

Histogram::Histogram(std::vector<std::uint64_t> counts, std::uint64_t sum)
    : counts_(std::move(counts)), sum_(sum) {
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] == 0) continue;
    count_ += counts_[i];
    max_ = lowest_of(i) + (highest_of(i) - lowest_of(i)) / 2;
  }
}

void Histogram::add(const Histogram& other) {
  if (counts_.size() < other.counts_.size()) counts_.resize(other.counts_.size());
  for (std::size_t i = 0; i < other.counts_.size(); ++i)
    counts_[i] += other.counts_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
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
