#include "common/ticks.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <stdexcept>
#include <vector>

namespace batchrpc_examples {
namespace ticks_test {

TEST_CASE("ticks are round numbers that enclose the range") {
  CHECK(nice_ticks(0, 500, 6) == std::vector<double>{0, 100, 200, 300, 400, 500});
  CHECK(nice_ticks(3, 497, 6) == std::vector<double>{0, 100, 200, 300, 400, 500});
  CHECK(nice_ticks(-0.7, 1.2, 5) == std::vector<double>{-1, -0.5, 0, 0.5, 1, 1.5});
  CHECK(nice_ticks(2, 11, 13, true).size() == 10);
}

TEST_CASE("ticks at whole numbers never lie closer than one") {
  CHECK(nice_ticks(1, 3, 9, true) == std::vector<double>{1, 2, 3});
}

TEST_CASE("a single value gets a range around it") {
  const std::vector<double> ticks = nice_ticks(3, 3, 5);
  CHECK(ticks.front() < 3);
  CHECK(ticks.back() > 3);
  CHECK(nice_ticks(0, 0, 5).size() >= 2);
}

TEST_CASE("ticks of a range that is none are refused") {
  CHECK_THROWS_AS(nice_ticks(2, 1, 5), std::invalid_argument);
  CHECK_THROWS_AS(nice_ticks(0, INFINITY, 5), std::invalid_argument);
  CHECK_THROWS_AS(nice_ticks(NAN, 1, 5), std::invalid_argument);
  CHECK_THROWS_AS(nice_ticks(0, 1, 1), std::invalid_argument);
}

TEST_CASE("tick labels have as many decimals as their step needs") {
  CHECK(tick_label(0.5, 0.5) == "0.5");
  CHECK(tick_label(1, 0.25) == "1.0");
  CHECK(tick_label(0.02, 0.02) == "0.02");
  CHECK(tick_label(300, 100) == "300");
  CHECK(tick_label(1500, 500) == "1500");
  CHECK(tick_label(2500000, 500000) == "2,500,000");
  CHECK(tick_label(-10000, 5000) == "-10,000");
}

}  // namespace ticks_test
}  // namespace batchrpc_examples
