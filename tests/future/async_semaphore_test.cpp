#include "batchrpc/future/async_semaphore.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "batchrpc/future/coroutine.hpp"
#include "batchrpc/future/promise.hpp"

// What a mutex shares with a semaphore is in async_mutex_test.cpp.

using namespace batchrpc;

namespace async_semaphore_test {

using Guard = AsyncSemaphore::Guard;

TEST_CASE("A semaphore gives out its places, and no more until one comes back") {
  AsyncSemaphore places(3);
  std::vector<Guard> guards;
  for (int i = 0; i < 3; ++i) {
    auto place = places.acquire();
    REQUIRE(place.ready());
    guards.push_back(std::move(place).get());
  }
  CHECK_FALSE(places.try_acquire());
  auto fourth = places.acquire();
  auto fifth = places.acquire();
  CHECK_FALSE(fourth.ready());
  guards.pop_back();
  CHECK(fourth.ready());
  CHECK_FALSE(fifth.ready());
  guards.front().unlock();
  CHECK(fifth.ready());
  CHECK_FALSE(guards.front());
}

TEST_CASE("Places are granted in order, and a dropped request leaves the line") {
  AsyncSemaphore places(1);
  std::optional<Guard> held = places.try_acquire();
  REQUIRE(held);
  auto first = places.acquire();
  auto second = std::make_optional(places.acquire());
  auto third = places.acquire();
  second.reset();
  held.reset();
  CHECK(first.ready());
  CHECK_FALSE(third.ready());
  std::move(first).get().unlock();
  CHECK(third.ready());
}

TEST_CASE("Guards and requests outlive their semaphore") {
  auto places = std::make_unique<AsyncSemaphore>(1);
  Guard guard = places->acquire().get();
  auto waiting = places->acquire();
  places.reset();
  guard.unlock();
  CHECK(std::move(waiting).get());
}

TEST_CASE("A semaphore without places is refused") {
  CHECK_THROWS_AS(AsyncSemaphore(0), InvalidArgument);
}

Future<void> run_one(AsyncSemaphore& places, int& inside, int& most, Future<void> gate) {
  const Guard place = co_await places.acquire();
  most = std::max(most, ++inside);
  co_await std::move(gate);
  --inside;
}

TEST_CASE("Coroutines that wait for places run as many at once as there are") {
  AsyncSemaphore places(4);
  int inside = 0, most = 0;
  std::vector<Promise<void>> gates(20);
  std::vector<Future<void>> all;
  for (auto& gate : gates)
    all.push_back(run_one(places, inside, most, gate.get_future()));
  CHECK(inside == 4);
  for (auto& gate : gates)
    gate.set_value();
  for (auto& each : all)
    each.get();
  CHECK(most == 4);
  CHECK(inside == 0);
}

}  // namespace async_semaphore_test
