#include "batchrpc/future/state.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"
#include "batchrpc/future/wait.hpp"
#include "future/virtual_wait.hpp"

using namespace batchrpc;
using namespace std::chrono_literals;

namespace state_test {

constexpr int kMany = 1'000'000;

/// A future that is `kMany` callbacks behind `promise`.
Future<int> chain(Promise<int>& promise) {
  auto future = promise.get_future();
  for (int i = 0; i < kMany; ++i)
    future = std::move(future).then([](int v) { return v + 1; });
  return future;
}

TEST_CASE("A state of a small value is at most 64 bytes") {
  CHECK(sizeof(detail::State<int>) <= 64);
  CHECK(sizeof(detail::State<void>) <= 64);
}

TEST_CASE("A chain of a million callbacks completes without recursion") {
  Promise<int> promise;
  const auto last = chain(promise);
  promise.set_value(0);
  CHECK(last.get() == kMany);
}

TEST_CASE("A chain of a million callbacks breaks without recursion") {
  auto promise = std::make_unique<Promise<int>>();
  const auto last = chain(*promise);
  promise.reset();
  CHECK_THROWS_AS(last.get(), BrokenPromise);
}

TEST_CASE("A chain of a million callbacks may be dropped before its end") {
  Promise<int> promise;
  { const auto dropped = chain(promise); }
  promise.set_value(0);
}

TEST_CASE(
    "A million promises, each held by the callback of the one before, break without recursion") {
  Promise<void> outermost;
  bool broken = false;
  Promise<void> inner;
  inner.get_future().then([&](Result<void> r) { broken = r.code() == ErrorCode::broken_promise; });
  for (int i = 0; i < kMany; ++i) {
    Promise<void> outer;
    outer.get_future().then([held = std::move(inner)] {});
    inner = std::move(outer);
  }
  { const auto dropped = std::move(inner); }
  CHECK(broken);
}

TEST_CASE("A loop made of callbacks that return futures neither recurses nor piles up stack") {
  struct Loop {
    static Future<int> count(int left) {
      if (left == 0) return make_ready_future(0);
      return make_ready_future().then([left] { return count(left - 1); });
    }
  };
  CHECK(Loop::count(100'000).get() == 0);
}

TEST_CASE("A completion inside a callback runs its callbacks when that callback has returned") {
  Promise<void> outer, inner;
  std::string order;
  inner.get_future().then([&] { order += "inner "; });
  auto future = outer.get_future();
  future.then([&] {
    inner.set_value();
    order += "first ";
  });
  future.then([&] { order += "second "; });
  outer.set_value();
  CHECK(order == "first second inner ");
}

TEST_CASE("Callbacks that a callback attaches to its own future run after those there before") {
  Promise<int> promise;
  auto future = promise.get_future();
  std::string order;
  future.then([&](int) {
    order += "a";
    future.then([&](int) { order += "c"; });
    order += "A";
  });
  future.then([&](int) { order += "b"; });
  promise.set_value(1);
  CHECK(order == "aAbc");
}

TEST_CASE("A callback may wait for a future whose callbacks are queued behind it on its thread") {
  Promise<int> outer, inner;
  int got = 0;
  auto doubled = inner.get_future().then([](int v) { return 2 * v; });
  outer.get_future().then([&](int v) {
    inner.set_value(v);
    CHECK_FALSE(doubled.ready());  // queued behind this callback
    got = doubled.get();
  });
  outer.set_value(4);
  CHECK(got == 8);
}

TEST_CASE("A callback that waits lets other work complete futures, whose callbacks run at once") {
  const auto context = std::make_shared<test::VirtualWait>();
  const WaitScope scope(context);
  Promise<void> outer;
  Promise<int> first, second;
  auto chained = first.get_future().then([](int v) { return v + 1; });
  context->after(1ms, [&] {
    first.set_value(1);
    CHECK(chained.ready());
    second.set_value(chained.get());
  });
  int got = 0;
  auto second_future = second.get_future();
  outer.get_future().then([&] { got = std::move(second_future).get(); });
  outer.set_value();
  CHECK(got == 2);
}

TEST_CASE("Waits nested in callbacks end in any depth and leave the order of callbacks") {
  const auto context = std::make_shared<test::VirtualWait>();
  const WaitScope scope(context);
  constexpr int kDepth = 64;
  std::vector<Promise<int>> promises(kDepth);
  std::vector<Future<int>> futures;
  for (auto& promise : promises)
    futures.push_back(promise.get_future());
  int finished = 0;
  for (int i = 0; i + 1 < kDepth; ++i) {
    futures[static_cast<std::size_t>(i)].then([&, i](int) {
      const auto next = static_cast<std::size_t>(i) + 1;
      context->after(1ms, [&, next] { promises[next].set_value(1); });
      finished += futures[next].get();
    });
  }
  promises[0].set_value(1);
  CHECK(finished == kDepth - 1);
}

TEST_CASE("A callback may take the value of the future that it belongs to") {
  Promise<std::unique_ptr<int>> promise;
  auto future = promise.get_future();
  int got = 0;
  bool later_ran = false;
  future.then([&](const std::unique_ptr<int>&) { got = *std::move(future).get(); });
  future.then([&](const std::unique_ptr<int>& value) { later_ran = value != nullptr; });
  promise.set_value(std::make_unique<int>(6));
  CHECK(got == 6);
  CHECK(later_ran);
  CHECK_FALSE(future.valid());
}

TEST_CASE("A callback may drop its future, its promise and what it was called with 100000 times") {
  struct Owner {
    Promise<std::string> promise;
    Future<std::string> future = promise.get_future();
    Future<std::size_t> next;
  };
  std::size_t total = 0;
  for (int i = 0; i < 100'000; ++i) {
    auto owner = std::make_unique<Owner>();
    auto* const held = owner.get();
    owner->next = owner->future.then([&owner, &total](const std::string& value) {
      owner.reset();  // destroys this lambda's future, the promise and the future of the value
      total += value.size();
      return value.size();
    });
    held->promise.set_value("some text that is on the heap, not inside");
    if (owner != nullptr) FAIL("the callback did not run");
  }
  CHECK(total == 4'100'000);
}

TEST_CASE("A callback may use every function of its own and of other futures and promises") {
  const auto context = std::make_shared<test::VirtualWait>();
  const WaitScope scope(context);
  Promise<int> promise, other;
  auto future = promise.get_future();
  auto other_future = other.get_future();
  int ran = 0;
  auto outer = future.then([&](int v) {
    CHECK(future.ready());
    CHECK(future.valid());
    CHECK(future.get() == v);
    CHECK(future.result().has_value());
    future.wait();
    CHECK(future.wait_for(1s));
    CHECK(future.wait_until(context->now()));
    CHECK_THROWS_AS(promise.get_future(), InvalidArgument);
    CHECK_THROWS_AS(promise.set_value(1), InvalidArgument);
    CHECK_FALSE(other_future.wait_for(1s));
    future.then([&](int) { ++ran; }).finally([&] { ++ran; }).on_error([](std::exception_ptr) {});
    other_future.then([&](int) { ++ran; });
    other.set_value(1);
    other_future.wait();
    CHECK(make_ready_future(1).then([&](int) { return ++ran; }).get() > 0);
    promise = Promise<int>();
    future = promise.get_future();
    return future.then([](int w) { return w; });
  });
  promise.set_value(5);
  CHECK(ran == 4);
  CHECK_FALSE(outer.ready());
  promise.set_value(6);
  CHECK(outer.get() == 6);
}

TEST_CASE("An exception in one callback touches neither the others nor who completes") {
  Promise<int> promise;
  auto future = promise.get_future();
  int ran = 0;
  auto throws = future.then([](int) { throw 42; });
  future.then([&](int) { ++ran; });
  CHECK_NOTHROW(promise.set_value(1));
  CHECK(ran == 1);
  CHECK_THROWS_AS(throws.get(), int);
}

TEST_CASE("While one callback waits, others of its future run, but none that takes the value") {
  const auto context = std::make_shared<test::VirtualWait>();
  const WaitScope scope(context);
  Promise<std::unique_ptr<int>> promise;
  auto future = promise.get_future();
  Promise<void> gate;
  const auto gate_future = gate.get_future();
  std::string order;
  future.then([&](const std::unique_ptr<int>& value) {
    order += "a";
    gate_future.wait();
    order += value != nullptr ? "A" : "?";
  });
  future.then([&](const std::unique_ptr<int>&) { order += "b"; });
  std::move(future).then([&](std::unique_ptr<int>) { order += "c"; });
  context->after(1ms, [&] { gate.set_value(); });
  promise.set_value(std::make_unique<int>(1));
  CHECK(order == "abAc");
}

TEST_CASE(
    "What runs during a callback's wait may attach to the callback's future and wait for that") {
  const auto context = std::make_shared<test::VirtualWait>();
  const WaitScope scope(context);
  Promise<int> promise;
  auto future = promise.get_future();
  Promise<int> other;
  const auto other_future = other.get_future();
  int seen = 0;
  future.then([&](int) { seen += other_future.get(); });
  context->after(1ms, [&] {
    auto attached = future.then([](int v) { return v; });
    CHECK(attached.ready());
    auto taken = std::move(future).then([](int v) { return v; });
    other.set_value(10 * attached.get() + taken.get());
  });
  promise.set_value(1);
  CHECK(seen == 11);
}

TEST_CASE("A wait in a callback runs no more of what was put off than it needs") {
  Promise<void> start;
  Promise<int> first, second;
  bool second_ran = false;
  auto doubled = first.get_future().then([](int v) { return 2 * v; });
  second.get_future().then([&](int) { second_ran = true; });
  int got = 0;
  start.get_future().then([&] {
    first.set_value(1);
    second.set_value(1);
    got = doubled.get();
    CHECK_FALSE(second_ran);
  });
  start.set_value();
  CHECK(got == 2);
  CHECK(second_ran);
}

TEST_CASE("Waits in callbacks nest 256 deep, beyond that they fail with Overloaded") {
  const auto context = std::make_shared<test::VirtualWait>();
  const WaitScope scope(context);
  Promise<int> never_yet;
  const auto waited_for = never_yet.get_future();
  context->after(1ms, [&] { never_yet.set_value(1); });
  Promise<void> start;
  std::vector<Promise<void>> promises(1000);
  std::vector<Future<int>> results;
  for (auto& promise : promises) {
    results.push_back(promise.get_future().then([&] { return waited_for.get(); }));
  }
  start.get_future().then([&] {
    for (auto& promise : promises)
      promise.set_value();
  });
  start.set_value();
  int succeeded = 0;
  for (const auto& result : results) {
    REQUIRE(result.ready());
    const bool overloaded = !result.result().has_value();
    if (overloaded) CHECK(result.result().code() == ErrorCode::overloaded);
    succeeded += overloaded ? 0 : 1;
  }
  CHECK(succeeded == 255);
}

}  // namespace state_test
