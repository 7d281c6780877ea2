// Threads that meet in one future. What the thread sanitizer sees counts most.

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "batchrpc/future/coroutine.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"
#include "batchrpc/future/when_all.hpp"
#include "batchrpc/future/when_any.hpp"

using namespace batchrpc;
using namespace std::chrono_literals;

namespace race_test {

constexpr int kRounds = 500;

/// Runs both, on two threads, as much at the same time as can be.
template <class A, class B>
void race(A&& a, B&& b) {
  std::atomic<int> arrived{0};
  const auto meet = [&] {
    ++arrived;
    while (arrived.load() < 2)
      std::this_thread::yield();
  };
  std::thread other([&] {
    meet();
    b();
  });
  meet();
  a();
  other.join();
}

TEST_CASE("A callback attached while the future completes runs once", "[threads]") {
  for (int i = 0; i < kRounds; ++i) {
    Promise<std::string> promise;
    auto future = promise.get_future();
    std::atomic<int> ran{0};
    race([&] { promise.set_value("value"); },
         [&] {
           future.then([&](const std::string& v) { ran += v.size() == 5; });
           future.then([&](const std::string& v) { ran += v.size() == 5; });
           std::move(future).then([&](std::string v) { ran += v.size() == 5; });
         });
    if (ran != 3) FAIL("ran " << ran);
  }
}

TEST_CASE("Callbacks attached while the future completes run in order and one at a time",
          "[threads]") {
  for (int i = 0; i < kRounds; ++i) {
    Promise<void> promise;
    auto future = promise.get_future();
    std::vector<int> order;  // not atomic: the callbacks are one after the other
    race([&] { promise.set_value(); },
         [&] {
           for (int k = 0; k < 10; ++k)
             future.then([&order, k] { order.push_back(k); });
         });
    if (order != std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) FAIL("out of order");
  }
}

TEST_CASE("A value is taken while the future completes", "[threads]") {
  for (int i = 0; i < kRounds; ++i) {
    Promise<std::unique_ptr<int>> promise;
    auto future = promise.get_future();
    int seen = 0;
    future.then([&](const std::unique_ptr<int>& v) { seen = *v; });
    race([&] { promise.set_value(std::make_unique<int>(i)); },
         [&] {
           const std::unique_ptr<int> value = std::move(future).get();
           if (*value != i || seen != i) FAIL("the callback saw " << seen);
         });
  }
}

TEST_CASE("A wait times out while the future completes", "[threads]") {
  for (int i = 0; i < kRounds; ++i) {
    Promise<int> promise;
    auto future = promise.get_future();
    std::atomic<int> ran{0};
    future.then([&](int) { ++ran; });
    race([&] { promise.set_value(i); },
         [&] {
           while (!future.wait_for(i % 2 == 0 ? 0us : 1us)) {
           }
           if (future.get() != i) FAIL("another value");
         });
    if (ran != 1) FAIL("ran " << ran);
  }
}

TEST_CASE("Several threads wait, time out and attach callbacks through one const future",
          "[threads]") {
  for (int i = 0; i < kRounds / 10; ++i) {
    Promise<int> promise;
    const auto future = promise.get_future();
    std::atomic<int> ran{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int k = 0; k < 5; ++k) {
          if (t % 2 == 0) future.then([&](int) { ++ran; });
          future.wait_for(1us);
        }
        future.wait();
        ran += future.get();
      });
    }
    std::this_thread::yield();
    promise.set_value(1);
    for (auto& thread : threads)
      thread.join();
    if (ran != 14) FAIL("ran " << ran);
  }
}

TEST_CASE("A future is dropped, or its promise, while the other is used", "[threads]") {
  for (int i = 0; i < kRounds; ++i) {
    auto promise = std::make_unique<Promise<std::string>>();
    auto future = promise->get_future();
    std::atomic<int> ran{0};
    race(
        [&] {
          if (i % 2 == 0) promise->set_value("value");
          promise.reset();
        },
        [&] {
          future.then([&](const Result<std::string>& r) { ran += r.has_value() == (i % 2 == 0); });
          future = Future<std::string>();
        });
    if (ran != 1) FAIL("ran " << ran);
  }
}

TEST_CASE("A coroutine is resumed on the thread that completes, while it suspends", "[threads]") {
  const auto coroutine = [](Future<int> a, Future<int> b) -> Future<int> {
    co_return co_await std::move(a) + co_await std::move(b);
  };
  for (int i = 0; i < kRounds; ++i) {
    Promise<int> a, b;
    auto future_a = a.get_future();
    auto future_b = b.get_future();
    Future<int> sum;
    race(
        [&] {
          a.set_value(1);
          b.set_value(2);
        },
        [&] { sum = coroutine(std::move(future_a), std::move(future_b)); });
    if (sum.get() != 3) FAIL("another sum");
  }
}

TEST_CASE("Two threads complete the sources of when_all and when_any", "[threads]") {
  for (int i = 0; i < kRounds; ++i) {
    std::vector<Promise<int>> promises(2);
    std::vector<Future<int>> futures;
    for (auto& promise : promises)
      futures.push_back(promise.get_future());
    auto any = when_any(futures);
    auto all = when_all(std::move(futures));
    race([&] { promises[0].set_value(1); }, [&] { promises[1].set_value(2); });
    const auto& first = any.get();
    if (first.value != static_cast<int>(first.index) + 1) FAIL("another value");
    if (all.get() != std::vector<int>{1, 2}) FAIL("other values");
  }
}

}  // namespace race_test
