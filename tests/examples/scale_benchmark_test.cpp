#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "scale_benchmark/growth.hpp"

namespace scale_benchmark {
namespace scale_benchmark_test {

double seconds(const Point& point) { return point.seconds; }

std::vector<Point> points(double (*cost)(double)) {
  std::vector<Point> all;
  for (const double size : {1.0, 10.0, 100.0, 1000.0, 10000.0})
    all.push_back({.size = size, .seconds = cost(size)});
  return all;
}

TEST_CASE("a cost that grows with a line is found to do so, whatever is fixed") {
  const auto growth = fit(points([](double size) { return 5 + 0.1 * size; }), seconds);
  REQUIRE(growth);
  CHECK(growth->fixed == Approx(5));
  CHECK(growth->each == Approx(0.1));
  CHECK(growth->power > 0.8);
  CHECK(growth->power < 1.01);
}

TEST_CASE("a cost that grows faster than a line has a power above 1") {
  const auto growth = fit(points([](double size) { return size * size; }), seconds);
  REQUIRE(growth);
  CHECK(growth->power == Approx(2));
  const auto slower = fit(points([](double size) { return std::sqrt(size); }), seconds);
  CHECK(slower->power == Approx(0.5));
}

TEST_CASE("the order of points does not matter, and two of them tell nothing") {
  std::vector<Point> some = points([](double size) { return 3 * size; });
  std::swap(some.front(), some.back());
  const auto growth = fit(some, seconds);
  REQUIRE(growth);
  CHECK(growth->power == Approx(1));
  CHECK_FALSE(fit({some.begin(), some.begin() + 2}, seconds));
  CHECK_FALSE(fit(points([](double /*size*/) { return 0.0; }), seconds));  // not measured
}

}  // namespace scale_benchmark_test
}  // namespace scale_benchmark
