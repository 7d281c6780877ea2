#include "batchrpc/base/histogram.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <vector>

namespace batchrpc {
namespace histogram_test {

TEST_CASE("a histogram of nothing says nothing") {
  const Histogram histogram;
  CHECK(histogram.count() == 0);
  CHECK(histogram.mean() == 0);
  CHECK(histogram.quantile(0.5) == 0);
  CHECK(histogram.buckets().empty());
}

TEST_CASE("small numbers are counted exactly") {
  Histogram histogram;
  for (std::uint64_t i = 0; i < 64; ++i)
    histogram.add(i);
  CHECK(histogram.count() == 64);
  CHECK(histogram.sum() == 63 * 32);
  CHECK(histogram.max() == 63);
  CHECK(histogram.quantile(0) == 0);
  CHECK(histogram.quantile(0.5) == 31);
  CHECK(histogram.quantile(1) == 63);
  const auto buckets = histogram.buckets();
  REQUIRE(buckets.size() == 64);
  for (std::uint64_t i = 0; i < 64; ++i) {
    CHECK(buckets[i].lowest == i);
    CHECK(buckets[i].highest == i);
    CHECK(buckets[i].count == 1);
  }
}

TEST_CASE("buckets follow one another without gaps, and none is wider than 1/32") {
  Histogram histogram;
  std::uint64_t next = 64;
  while (next < (std::uint64_t{1} << 40)) {
    histogram.clear();
    histogram.add(next);
    const auto bucket = histogram.buckets().at(0);
    REQUIRE(bucket.lowest == next);
    REQUIRE((bucket.highest - bucket.lowest + 1) * 32 <= bucket.lowest);
    next = bucket.highest + 1;
  }
  histogram.add(~std::uint64_t{0});
  CHECK(histogram.buckets().back().highest == ~std::uint64_t{0});
}

TEST_CASE("quantiles of many numbers are off by at most 1.6 %") {
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> values;
  Histogram histogram;
  for (int i = 0; i < 10'000; ++i) {
    values.push_back(random() >> (random() % 60));
    histogram.add(values.back());
  }
  std::sort(values.begin(), values.end());
  for (const double fraction : {0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank = static_cast<std::size_t>(std::ceil(fraction * 10'000)) - 1;
    const double exact = static_cast<double>(values[rank]);
    CHECK(static_cast<double>(histogram.quantile(fraction)) == Approx(exact).epsilon(0.016));
  }
}

TEST_CASE("a number may be counted many times at once") {
  Histogram histogram;
  histogram.add(10, 5);
  histogram.add(1000, 5);
  CHECK(histogram.count() == 10);
  CHECK(histogram.mean() == 505);
  CHECK(histogram.quantile(0.5) == 10);
}

}  // namespace histogram_test
}  // namespace batchrpc
