#include "common/statistics.hpp"

#include <catch2/catch.hpp>
#include <stdexcept>
#include <vector>

namespace batchrpc_examples {
namespace statistics_test {

TEST_CASE("the median is the middle value, or half way between the two middle ones") {
  CHECK(median({3, 1, 2}) == 2);
  CHECK(median({4, 1, 2, 3}) == 2.5);
  CHECK(median({7}) == 7);
}

TEST_CASE("percentiles interpolate between the nearest values, as NumPy does") {
  const std::vector<double> values = {40, 10, 30, 20, 50};
  CHECK(percentile(values, 0) == 10);
  CHECK(percentile(values, 100) == 50);
  CHECK(percentile(values, 90) == Approx(46));
  CHECK(percentiles(values, {95, 50}) == std::vector<double>{48, 30});
}

TEST_CASE("the mean of values is their sum divided by their number") {
  CHECK(mean({1, 2, 6}) == 3);
}

TEST_CASE("statistics of no values, or beyond 100 per cent, are refused") {
  CHECK_THROWS_AS(median({}), std::invalid_argument);
  CHECK_THROWS_AS(mean({}), std::invalid_argument);
  CHECK_THROWS_AS(percentile({1}, 101), std::invalid_argument);
  CHECK_THROWS_AS(percentile({1}, -1), std::invalid_argument);
}

}  // namespace statistics_test
}  // namespace batchrpc_examples
