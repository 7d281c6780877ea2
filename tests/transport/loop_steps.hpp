#pragma once

#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "batchrpc/transport/loop.hpp"
#include "signal.hpp"

/// What tests do with a loop.
namespace batchrpc::test {

/// A wait that is over only when a task of the loop has run.
inline void pass_through(Loop& loop) {
  Countdown passed(1);
  loop.post([&] { passed.arrive(); });
  passed.wait(loop);
}

/// Drives the loop, so that its lease is this thread's. (The I/O thread may be faster than a wait.)
inline void take_lease(Loop& loop) {
  std::thread::id driver;
  while (driver != std::this_thread::get_id()) {
    Countdown passed(1);
    loop.post([&] {
      driver = std::this_thread::get_id();
      passed.arrive();
    });
    passed.wait(loop);
  }
}

/// Sleeps, as threads do that know nothing of a loop.
inline void sleep_for(Waiter& waiter) {
  waiter.sleep(std::chrono::steady_clock::now() + kPatience);
  REQUIRE(waiter.ready());
}

inline void run_threads(int count, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back(body, i);
  for (std::thread& thread : threads)
    thread.join();
}

}  // namespace batchrpc::test
