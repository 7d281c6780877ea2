#include "transport/stopwatch.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <memory>
#include <thread>

#include "batchrpc/transport/socket_loop.hpp"
#include "batchrpc/transport/virtual_loop.hpp"

namespace batchrpc {
namespace stopwatch_test {

using detail::TickCounter;
using namespace std::chrono_literals;

// How far what the counter says of some time is from what the steady clock does.
double error_over(TickCounter& counter, Duration time) {
  double least = 1;
  for (int i = 0; i < 5; ++i) {  // a thread that is put aside between two readings is off
    const auto begin = std::chrono::steady_clock::now();
    const std::uint64_t first = counter.ticks();
    std::this_thread::sleep_for(time);
    const std::uint64_t last = counter.ticks();
    const auto end = std::chrono::steady_clock::now();
    counter.measure_now_and_then();
    const auto is = static_cast<double>(counter.nanoseconds(last - first));
    const auto expected = static_cast<double>(Duration(end - begin).count());
    least = std::min(least, std::abs(is - expected) / expected);
  }
  return least;
}

TEST_CASE("ticks of the processor's counter are as long as the steady clock says") {
  if (!TickCounter::is_good()) {
    SUCCEED("the kernel does not keep time by it: loops count nanoseconds");
    return;
  }
  TickCounter counter;
  CHECK(error_over(counter, 2ms) < 0.005);
  CHECK(error_over(counter, 20ms) < 0.002);
}

TEST_CASE("ticks go on from one thread to another, and what is negative is no time", "[threads]") {
  const auto loop = SocketLoop::start();
  const Stopwatch stopwatch(*loop);
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t here = stopwatch.ticks();
    std::uint64_t there = 0;
    std::thread([&] { there = stopwatch.ticks(); }).join();
    CHECK(there > here);
    CHECK(stopwatch.between(here, there) > 0);
    CHECK(stopwatch.between(there, here) == 0);
  }
  CHECK(stopwatch.between(1, 1) == 0);
}

TEST_CASE("the ticks of a virtual loop are its time") {
  const auto loop = std::make_shared<VirtualLoop>();
  const std::uint64_t first = loop->ticks();
  loop->run_for(123ms);
  CHECK(loop->time_of(loop->ticks() - first) == 123ms);
  CHECK(loop->time_of(first - loop->ticks()) == Duration::zero());
  const Stopwatch stopwatch(*loop);
  CHECK(stopwatch.between(first, stopwatch.ticks()) == 123'000'000);
  CHECK(stopwatch.between(stopwatch.ticks(), first) == 0);
}

TEST_CASE("the ticks of a socket loop are as long as its time", "[threads]") {
  const auto loop = SocketLoop::start();
  const TimePoint begin = loop->now();
  const std::uint64_t first = loop->ticks();
  while (loop->now() - begin < 5ms) {
  }
  CHECK(loop->time_of(loop->ticks() - first) >= 4900us);
  const Stopwatch stopwatch(*loop);
  CHECK(stopwatch.between(first, stopwatch.ticks()) >= 4'900'000);
}

}  // namespace stopwatch_test
}  // namespace batchrpc
