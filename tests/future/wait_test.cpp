#include "batchrpc/future/wait.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <memory>
#include <string>
#include <thread>

#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"
#include "future/virtual_wait.hpp"

using namespace batchrpc;
using namespace std::chrono_literals;

namespace wait_test {

struct InVirtualTime {
  std::shared_ptr<test::VirtualWait> context = std::make_shared<test::VirtualWait>();
  WaitScope scope{context};
};

TEST_CASE("get() waits through the thread's wait context") {
  const InVirtualTime time;
  Promise<int> promise;
  const auto future = promise.get_future();
  time.context->after(5s, [&] { promise.set_value(3); });
  const auto begin = time.context->now();
  CHECK(future.get() == 3);
  CHECK(time.context->now() - begin == 5s);
}

TEST_CASE("A future that is ready does not ask the wait context") {
  const InVirtualTime time;
  auto future = make_ready_future(1);
  future.wait();
  CHECK(future.wait_for(1s));
  CHECK(future.wait_until(TimePoint::min()));
  CHECK(future.get() == 1);
  CHECK(std::move(future).get() == 1);
  CHECK(time.context->waits == 0);
}

TEST_CASE("wait_for gives up at its time on the context's clock") {
  const InVirtualTime time;
  Promise<int> promise;
  const auto future = promise.get_future();
  time.context->after(5s, [&] { promise.set_value(3); });
  const auto begin = time.context->now();
  CHECK_FALSE(future.wait_for(2s));
  CHECK(time.context->now() - begin == 2s);
  CHECK_FALSE(future.wait_until(begin + 4s));
  CHECK_FALSE(future.wait_for(0s));
  CHECK_FALSE(future.wait_for(-1s));
  CHECK(time.context->now() - begin == 4s);
  CHECK(future.wait_for(0.5min));
  CHECK(time.context->now() - begin == 5s);
}

TEST_CASE("Timeouts beyond the clock's range wait for ever") {
  const InVirtualTime time;
  Promise<int> promise;
  const auto future = promise.get_future();
  time.context->after(24h, [&] { promise.set_value(3); });
  SECTION("the largest duration") { CHECK(future.wait_for(Duration::max())); }
  SECTION("more hours than fit") { CHECK(future.wait_for(std::chrono::hours::max())); }
  SECTION("infinitely many seconds") {
    CHECK(future.wait_for(std::chrono::duration<double>(std::numeric_limits<double>::infinity())));
  }
  SECTION("the last point in time") { CHECK(future.wait_until(TimePoint::max())); }
}

TEST_CASE("Waits that timed out leave nothing behind, among callbacks that stay in order") {
  const InVirtualTime time;
  Promise<int> promise;
  const auto future = promise.get_future();
  std::string order;
  future.then([&](int) { order += "a"; });
  CHECK_FALSE(future.wait_for(1s));
  future.then([&](int) { order += "b"; });
  // A callback that is attached while the thread waits lies above the waiting thread's in the
  // state.
  time.context->after(1s, [&] { future.then([&](int) { order += "c"; }); });
  CHECK_FALSE(future.wait_for(2s));
  future.then([&](int) { order += "d"; });
  for (int i = 0; i < 1000; ++i)
    CHECK_FALSE(future.wait_for(1ms));
  promise.set_value(1);
  CHECK(order == "abcd");
}

TEST_CASE("A wait may nest in a wait for the same future") {
  const InVirtualTime time;
  Promise<int> promise;
  const auto future = promise.get_future();
  bool inner = true;
  time.context->after(1s, [&] { inner = future.wait_for(1s); });
  time.context->after(3s, [&] { promise.set_value(1); });
  CHECK(future.get() == 1);
  CHECK_FALSE(inner);
}

TEST_CASE("A waiting thread is woken before callbacks that were attached earlier run",
          "[threads]") {
  Promise<int> promise;
  const auto future = promise.get_future();
  Promise<void> woken;
  const auto woken_future = woken.get_future();
  // Were the waiting thread behind this callback, neither would ever go on.
  future.then([&](int) { woken_future.wait(); });
  std::thread waits([&] {
    CHECK(future.get() == 1);
    woken.set_value();
  });
  promise.set_value(1);
  waits.join();
}

TEST_CASE("Taking a value waits for callbacks that look at it, on another thread", "[threads]") {
  for (int i = 0; i < 100; ++i) {
    Promise<std::unique_ptr<int>> promise;
    auto future = promise.get_future();
    Promise<void> entered, leave;
    auto entered_future = entered.get_future();
    int seen = 0;
    future.then([&, gate = leave.get_future()](const std::unique_ptr<int>& value) {
      entered.set_value();
      gate.wait();
      seen = *value;
    });
    std::thread completes([&] { promise.set_value(std::make_unique<int>(3)); });
    std::thread leaves([&, entered_ = std::move(entered_future)] {
      entered_.wait();
      leave.set_value();
    });
    CHECK(*std::move(future).get() == 3);
    CHECK(seen == 3);
    completes.join();
    leaves.join();
  }
}

TEST_CASE("A future that a nested event moved away while it was waited for is noticed") {
  const InVirtualTime time;
  Promise<int> promise;
  auto future = promise.get_future();
  Future<int> elsewhere;
  time.context->after(1s, [&] {
    elsewhere = std::move(future);
    promise.set_value(1);
  });
  CHECK_THROWS_AS(future.get(), InvalidArgument);
  CHECK(elsewhere.get() == 1);
}

TEST_CASE("An exception from the wait context reaches the caller and leaves the future intact") {
  const InVirtualTime time;
  Promise<int> promise;
  auto future = promise.get_future();
  CHECK_THROWS_AS(future.get(), std::logic_error);  // nothing is scheduled
  CHECK_THROWS_AS(std::move(future).get(), std::logic_error);
  promise.set_value(1);
  CHECK(std::move(future).get() == 1);
}

TEST_CASE("A waiter sleeps until it is notified, nudged or late", "[threads]") {
  Waiter waiter;
  CHECK_FALSE(waiter.sleep(TimePoint::min()));
  waiter.nudge();
  CHECK_FALSE(waiter.sleep());
  int interrupts = 0;
  waiter.set_interrupt([](void* count) noexcept { ++*static_cast<int*>(count); }, &interrupts);
  std::thread notifies([&] { waiter.notify(); });
  CHECK(waiter.sleep());
  notifies.join();
  CHECK(interrupts == 1);
  CHECK(waiter.ready());
}

TEST_CASE(
    "The innermost scope's context is the thread's, then the one suggested last while it lives") {
  auto suggested = std::make_shared<test::VirtualWait>();
  WaitContext::suggest(suggested);
  CHECK(WaitContext::current() == suggested);
  {
    const InVirtualTime outer;
    CHECK(WaitContext::current() == outer.context);
    {
      const InVirtualTime inner;
      CHECK(WaitContext::current() == inner.context);
    }
    CHECK(WaitContext::current() == outer.context);
  }
  CHECK(WaitContext::current() == suggested);
  suggested.reset();
  CHECK(WaitContext::current() != nullptr);
  CHECK(WaitContext::current()->now() > TimePoint());
}

}  // namespace wait_test
