// What counting costs: build/release/bin/test_metrics "[.benchmark]". Compiled with optimization.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <thread>
#include <vector>

#include "batchrpc/transport/socket_loop.hpp"
#include "metrics/node_counters.hpp"

namespace batchrpc {
namespace event_cost_test {

template <class Event>
double nanoseconds_each(const Event& event) {
  constexpr int kEvents = 5'000'000;
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kEvents; ++i)
      event(static_cast<std::uint64_t>(i));
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count() / kEvents);
  }
  return best;
}

TEST_CASE("what an event costs", "[.benchmark]") {
  const auto loop = SocketLoop::start();
  const Stopwatch stopwatch(*loop);
  NodeCounters node(*loop);
  FunctionCounters& function = node.function("f");
  FunctionCounters& few = node.function("few");
  CallsMade session(&node);
  session.define("f", false);
  ConcurrentHistogram histogram;
  const auto notify = [](const char* what, double each) {
    std::cout << what << ": " << each << " ns\n";
  };
  const auto latency = [](std::uint64_t i) { return 10'000 + (i * 7919) % 100'000; };
  notify("a histogram's add()", nanoseconds_each([&](auto i) { histogram.add(latency(i)); }));
  notify("a histogram's add_alone()",
         nanoseconds_each([&](auto i) { histogram.add_alone(latency(i)); }));
  std::uint64_t sum = 0;
  notify("a time", nanoseconds_each([&](auto) { sum += stopwatch.ticks(); }));
  const std::uint64_t then = stopwatch.ticks();
  notify("a call begins, caller", nanoseconds_each([&](auto) {
           sum += stopwatch.ticks();
           session.called(0, 100);
         }));
  notify("a call ends, caller", nanoseconds_each([&](auto i) {
           session.answered(0, stopwatch.between(then, then + latency(i)), 100);
         }));
  notify("a call ends, callee, of few", nanoseconds_each([&](auto i) {  // the cost of being shared
           few.answered(latency(i), 100);
         }));
  notify("a call begins, callee", nanoseconds_each([&](auto) { function.began(100); }));
  notify("a call ends, callee", nanoseconds_each([&](auto i) {
           const std::uint64_t now = stopwatch.ticks();
           function.answered(stopwatch.between(now - latency(i), now), 100);
         }));
  for (const unsigned threads : {2U, 4U}) {
    std::vector<std::thread> all;
    std::vector<double> each(threads);
    for (double& result : each) {
      all.emplace_back(
          [&] { result = nanoseconds_each([&](auto i) { function.answered(latency(i), 100); }); });
    }
    for (std::thread& thread : all)
      thread.join();
    std::cout << threads << " threads at once, ";
    notify("a call ends, callee, without its time", *std::max_element(each.begin(), each.end()));
  }
  CHECK(sum > 0);
}

}  // namespace event_cost_test
}  // namespace batchrpc
