#include "batch/cost_curve.hpp"

#include <catch2/catch.hpp>
#include <random>

namespace batchrpc::detail {
namespace cost_curve_test {

using namespace std::chrono_literals;

// Batches of 1 to 20 rows, a microsecond a row.
void add_batches(CostCurve& curve, int count, Duration fixed, Duration per_row) {
  for (int i = 0; i < count; ++i) {
    const int rows = 1 + 7 * i % 20;
    curve.add(static_cast<std::size_t>(rows), fixed + rows * per_row);
  }
}

TEST_CASE("a cost curve finds both parts of the cost") {
  CostCurve curve;
  CHECK(!curve.known());
  add_batches(curve, 40, 100us, 5us);
  CHECK(curve.known());
  CHECK(curve.fixed() == Approx(100e3).epsilon(0.01));
  CHECK(curve.per_row() == Approx(5e3).epsilon(0.01));
  CHECK(curve.of(10) == Approx(150e3).epsilon(0.01));
  CHECK(curve.rows_within(150e3) == Approx(10).epsilon(0.01));
  CHECK(curve.rows_within(50e3) == 0);
}

TEST_CASE("neither part of a cost is negative") {
  CostCurve none;
  add_batches(none, 40, 0us, 5us);
  CHECK(none.fixed() == Approx(0).margin(100));
  CostCurve flat;
  add_batches(flat, 40, 100us, 0us);
  CHECK(flat.per_row() == Approx(0).margin(10));
  CostCurve falling;
  for (int i = 0; i < 40; ++i)
    falling.add(static_cast<std::size_t>(1 + i % 2), i % 2 == 0 ? 100us : 80us);
  CHECK(falling.per_row() == 0);
  CHECK(falling.fixed() == Approx(90e3).epsilon(0.02));
  CostCurve steep;
  for (int i = 0; i < 40; ++i)
    steep.add(static_cast<std::size_t>(10 + 5 * (i % 2)), i % 2 == 0 ? 60us : 110us);
  CHECK(steep.fixed() == 0);
}

TEST_CASE("batches of one size say what they cost, and little of the parts") {
  CostCurve curve;
  for (int i = 0; i < 40; ++i)
    curve.add(1, 100us);
  CHECK(curve.per_row() == Approx(0).margin(1));
  CHECK(curve.fixed() == Approx(100e3));
  CHECK(curve.is_guess());
  add_batches(curve, 40, 50us, 5us);
  CHECK(!curve.is_guess());
  for (int i = 0; i < 200; ++i)
    curve.add(10, 120us);  // instead of 100 us
  CHECK(curve.of(10) == Approx(120e3).epsilon(0.01));
  CHECK(curve.is_guess());
  CHECK(curve.per_row() > 2e3);
  CHECK(curve.per_row() < 8e3);
}

TEST_CASE("single batches that take much longer do not count") {
  CostCurve curve;
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    const std::size_t rows = 1 + random() % 20;
    const auto usual = 100us + rows * 5us;
    curve.add(rows, i % 10 == 9 ? 20 * usual : usual * (90 + random() % 21) / 100);
  }
  CHECK(curve.of(1) == Approx(105e3).epsilon(0.1));
  CHECK(curve.of(20) == Approx(200e3).epsilon(0.1));
}

TEST_CASE("a handler that has become slower or faster is noticed within some batches") {
  CostCurve curve;
  add_batches(curve, 100, 100us, 5us);
  add_batches(curve, 8, 1000us, 50us);
  CHECK(curve.of(10) == Approx(1500e3).epsilon(0.05));
  add_batches(curve, 8, 10us, 1us);
  CHECK(curve.of(10) == Approx(20e3).epsilon(0.05));
  add_batches(curve, 64, 13us, 1us);  // by less
  CHECK(curve.of(10) == Approx(23e3).epsilon(0.05));
}

}  // namespace cost_curve_test
}  // namespace batchrpc::detail
