#include "metrics/concurrent_histogram.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <random>
#include <thread>
#include <vector>

namespace batchrpc {
namespace concurrent_histogram_test {

void check_same(const Histogram& is, const Histogram& expected) {
  CHECK(is.count() == expected.count());
  CHECK(is.sum() == expected.sum());
  const auto buckets = is.buckets();
  const auto expected_buckets = expected.buckets();
  REQUIRE(buckets.size() == expected_buckets.size());
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    CHECK(buckets[i].lowest == expected_buckets[i].lowest);
    CHECK(buckets[i].highest == expected_buckets[i].highest);
    CHECK(buckets[i].count == expected_buckets[i].count);
  }
}

TEST_CASE("a concurrent histogram of nothing is one of nothing") {
  const ConcurrentHistogram histogram;
  CHECK(histogram.snapshot().count() == 0);
  CHECK(histogram.snapshot().buckets().empty());
  CHECK(histogram.snapshot().quantile(0.5) == 0);
}

TEST_CASE("a concurrent histogram counts as a plain one does, over the whole range") {
  ConcurrentHistogram concurrent;
  ConcurrentHistogram alone;
  Histogram plain;
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t value = random() >> (random() % 64);
    concurrent.add(value);
    alone.add_alone(value);
    plain.add(value);
  }
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{63}, std::uint64_t{64},
                                    std::uint64_t{65}, std::numeric_limits<std::uint64_t>::max()}) {
    concurrent.add(value);
    alone.add_alone(value);
    plain.add(value);
  }
  check_same(concurrent.snapshot(), plain);
  check_same(alone.snapshot(), plain);
  for (const double fraction : {0.0, 0.1, 0.5, 0.9, 0.99, 1.0}) {
    const auto expected = static_cast<double>(plain.quantile(fraction));
    CHECK(static_cast<double>(concurrent.snapshot().quantile(fraction)) ==
          Approx(expected).epsilon(0.016));
  }
}

TEST_CASE("what threads count at once in a concurrent histogram is all there", "[threads]") {
  constexpr std::uint64_t kEach = 20'000;
  ConcurrentHistogram histogram;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&histogram, t] {
      for (std::uint64_t i = 0; i < kEach; ++i)
        histogram.add(i << (4 * t));
    });
  }
  std::uint64_t before = 0;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t count = histogram.snapshot().count();
    CHECK(count >= before);
    before = count;
  }
  for (std::thread& thread : threads)
    thread.join();
  Histogram plain;
  for (std::uint64_t t = 0; t < 4; ++t) {
    for (std::uint64_t i = 0; i < kEach; ++i)
      plain.add(i << (4 * t));
  }
  check_same(histogram.snapshot(), plain);
}

}  // namespace concurrent_histogram_test
}  // namespace batchrpc
