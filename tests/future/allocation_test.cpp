// How often futures allocate, counted by replacing operator new for this whole test program, with
// no free blocks left from before. Not under sanitizers, which have an operator new of their own.
#include "sanitizers.hpp"
#if !BATCHRPC_TEST_ASAN && !BATCHRPC_TEST_TSAN

#include <malloc.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <new>
#include <utility>

#include "batchrpc/base/block_pool.hpp"
#include "batchrpc/future/async_mutex.hpp"
#include "batchrpc/future/coroutine.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"
#include "batchrpc/future/when_all.hpp"
#include "future/virtual_wait.hpp"

namespace {

thread_local std::size_t allocations = 0;
thread_local std::size_t live_bytes = 0;
thread_local std::size_t most_bytes = 0;  // at once, since it was last set

}  // namespace

// Never inlined, lest the compiler see only one half of a pair. The array and nothrow forms call
// these.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  void* const memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  live_bytes += ::malloc_usable_size(memory);
  most_bytes = std::max(most_bytes, live_bytes);
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  live_bytes -= ::malloc_usable_size(memory);
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/) noexcept {
  operator delete(memory);
}

using namespace batchrpc;

namespace {

void give_back_free_blocks() {
  for (int i = 0; i < 32; ++i)
    detail::trim_blocks();
}

// Without those that `f` itself has freed before.
template <class F>
std::size_t allocations_of(F&& f) {
  give_back_free_blocks();
  const std::size_t before = allocations;
  f();
  return allocations - before;
}

}  // namespace

TEST_CASE("A promise and its future are one allocation, with value or error") {
  CHECK(allocations_of([] { const Promise<int> promise; }) == 1);
  CHECK(allocations_of([] {
          Promise<int> promise;
          auto future = promise.get_future();
          promise.set_value(1);
          CHECK(std::move(future).get() == 1);
        }) == 1);
  CHECK(allocations_of([] { CHECK(make_ready_future(1).get() == 1); }) == 1);
}

TEST_CASE("Each callback is one allocation, its future's, however much it captures") {
  Promise<int> promise;
  const auto future = promise.get_future();
  std::array<char, 500> large{};
  CHECK(allocations_of([&] { future.then([](int) {}); }) == 1);
  CHECK(allocations_of([&] { future.then([large](int) { static_cast<void>(large[0]); }); }) == 1);
  CHECK(allocations_of([&] { future.on_error([](std::exception_ptr) { return 1; }); }) == 1);
  CHECK(allocations_of([&] { future.finally([] {}); }) == 1);
  CHECK(allocations_of([&] { promise.set_value(1); }) == 0);
}

TEST_CASE("A chain of a million callbacks takes no memory but that of its futures") {
  constexpr int kMany = 1'000'000;
  give_back_free_blocks();
  const std::size_t before = live_bytes;
  {
    Promise<int> promise;
    auto last = promise.get_future();
    std::size_t built = 0;
    const std::size_t each = allocations_of([&] {
      for (int i = 0; i < kMany; ++i)
        last = std::move(last).then([](int v) { return v + 1; });
      built = live_bytes - before;
    });
    CHECK(each == kMany);
    CHECK(built <= std::size_t{kMany} * 160);
    most_bytes = live_bytes;
    promise.set_value(0);  // neither queues nor stacks grow with the chain
    CHECK(most_bytes <= before + built + 4096);
    CHECK(last.get() == kMany);
    give_back_free_blocks();
    CHECK(live_bytes <= before + 4096);  // what has run is given back, though the last one lives
  }
  give_back_free_blocks();
  CHECK(live_bytes <= before + 4096);
}

TEST_CASE("A flattened future is one allocation for the callback's and one for the inner one") {
  Promise<int> inner;
  auto inner_future = inner.get_future();
  const auto ready = make_ready_future();
  Future<int> outer;
  CHECK(allocations_of([&] { outer = ready.then([&] { return std::move(inner_future); }); }) == 1);
  CHECK(allocations_of([&] { inner.set_value(1); }) == 0);
  CHECK(outer.get() == 1);
}

TEST_CASE("Waiting allocates nothing") {
  const auto context = std::make_shared<test::VirtualWait>();
  const WaitScope scope(context);
  Promise<int> promise;
  const auto future = promise.get_future();
  CHECK(allocations_of([&] { CHECK_FALSE(future.wait_for(std::chrono::seconds(1))); }) == 0);
  context->after(std::chrono::seconds(1), [&] { promise.set_value(1); });
  CHECK(allocations_of([&] { future.wait(); }) == 0);
}

TEST_CASE("A coroutine is two allocations, its frame and its future, and awaiting is none") {
  const auto await_both = [](const Future<int>& a, const Future<int>& b) -> Future<int> {
    co_return co_await a + co_await b;
  };
  Promise<int> promise;
  const auto pending = promise.get_future();
  const auto ready = make_ready_future(1);
  Future<int> sum;
  CHECK(allocations_of([&] { sum = await_both(ready, pending); }) == 2);
  CHECK(allocations_of([&] { promise.set_value(2); }) == 0);
  CHECK(sum.get() == 3);
}

TEST_CASE("when_all of some futures is one allocation") {
  Promise<int> first, second;
  auto a = first.get_future();
  auto b = second.get_future();
  Future<std::tuple<int, int>> all;
  CHECK(allocations_of([&] { all = when_all(std::move(a), std::move(b)); }) == 1);
  CHECK(allocations_of([&] {
          first.set_value(1);
          second.set_value(2);
        }) == 0);
}

TEST_CASE("A lock that nobody has is one allocation, its future, and none with try_lock") {
  AsyncMutex mutex;
  CHECK(allocations_of([&] { mutex.lock().get().unlock(); }) == 1);
  CHECK(allocations_of([&] { CHECK(mutex.try_lock()); }) == 0);
}

#endif
