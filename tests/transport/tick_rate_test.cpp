#include "transport/tick_rate.hpp"

#include <catch2/catch.hpp>
#include <cstdint>

namespace batchrpc::detail {
namespace tick_rate_test {

constexpr double kRate = 0.4;  // ns a tick
constexpr std::uint64_t kSecond = 1'000'000'000;

/// A counter and a clock of no machine.
struct Clocks {
  TickRate rate{};
  std::uint64_t ticks = 5'000'000;
  std::uint64_t nanoseconds = 700'000;
  std::uint64_t due = 0;

  Clocks() {
    take();
    run(50'000);
    take();
  }
  void take() { due = rate.take({.ticks = ticks, .nanoseconds = nanoseconds}); }
  void run(std::uint64_t time, double nanoseconds_a_tick = kRate) {
    nanoseconds += time;
    ticks += static_cast<std::uint64_t>(static_cast<double>(time) / nanoseconds_a_tick);
  }
  void suspend(std::uint64_t time) {
    ticks += static_cast<std::uint64_t>(static_cast<double>(time) / kRate);
  }
  /// Until a reading is due, which is taken.
  void go_on(int times, double nanoseconds_a_tick = kRate) {
    for (int i = 0; i < times; ++i) {
      if (due > ticks) {
        run(static_cast<std::uint64_t>(static_cast<double>(due - ticks) * nanoseconds_a_tick) + 1,
            nanoseconds_a_tick);
      }
      take();
    }
  }
  [[nodiscard]] bool has(double expected, double share) const {
    return rate.rate() == Approx(expected).epsilon(share);
  }
};

TEST_CASE("a rate is measured over a time that doubles") {
  Clocks clocks;
  CHECK(clocks.has(kRate, 1e-4));
  const std::uint64_t begin = clocks.nanoseconds;
  clocks.go_on(20);
  CHECK(clocks.nanoseconds - begin > 50'000ULL << 19U);
  CHECK(clocks.has(kRate, 1e-9));
}

TEST_CASE("time in suspend, which one of the clocks has not seen, does not spoil the rate") {
  const bool counter_runs = GENERATE(true, false);
  Clocks clocks;
  clocks.go_on(25);
  for (int night = 0; night < 5; ++night) {
    if (counter_runs) {
      clocks.suspend(8 * 3600 * kSecond);
    } else {
      clocks.nanoseconds += 8 * 3600 * kSecond;
    }
    clocks.go_on(1);
    CHECK(clocks.has(kRate, 1e-6));
    CHECK(clocks.due - clocks.ticks < 3 * kSecond);  // a second of ticks
    clocks.go_on(5);
    CHECK(clocks.has(kRate, 1e-6));
  }
}

TEST_CASE("a counter that goes back is measured anew") {
  Clocks clocks;
  clocks.go_on(25);
  clocks.ticks = 1000;
  clocks.take();
  CHECK(clocks.has(kRate, 1e-6));
  clocks.go_on(3);
  CHECK(clocks.has(kRate, 1e-6));
}

TEST_CASE("a first reading that was off does not stay") {
  Clocks clocks;
  clocks.rate = TickRate();
  clocks.take();
  clocks.run(50'000);
  clocks.nanoseconds += 5'000;  // put aside between counter and clock
  clocks.take();
  CHECK_FALSE(clocks.has(kRate, 0.05));
  clocks.go_on(3);
  CHECK(clocks.has(kRate, 1e-4));
  clocks.go_on(20);
  CHECK(clocks.has(kRate, 1e-4));
}

TEST_CASE("a rate that has changed for good is taken the second time") {
  Clocks clocks;
  clocks.go_on(25);
  clocks.go_on(1, kRate * 1.25);
  CHECK(clocks.has(kRate, 1e-6));
  clocks.go_on(1, kRate * 1.25);
  CHECK(clocks.has(kRate * 1.25, 1e-6));
}

}  // namespace tick_rate_test
}  // namespace batchrpc::detail
