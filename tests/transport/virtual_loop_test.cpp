#include "batchrpc/transport/virtual_loop.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <vector>

#include "batchrpc/base/error.hpp"

namespace batchrpc {
namespace virtual_loop_test {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("virtual time jumps to the next task and stands still while it runs") {
  VirtualLoop loop;
  const TimePoint start = loop.now();
  std::vector<int> order;
  loop.schedule(start + hours(1), [&] {
    order.push_back(2);
    CHECK(loop.now() == start + hours(1));
    CHECK(loop.is_driving());
  });
  loop.schedule(start + seconds(1), [&] { order.push_back(1); });
  loop.post([&] { order.push_back(0); });
  CHECK(order.empty());
  CHECK(loop.run_until_idle());
  CHECK(order == std::vector{0, 1, 2});
  CHECK(loop.now() == start + hours(1));
  CHECK_FALSE(loop.is_driving());
}

TEST_CASE("tasks of the same time run in the order in which they came") {
  VirtualLoop loop;
  std::vector<int> order;
  for (int i = 0; i < 100; ++i)
    loop.schedule(loop.now() + seconds(1), [&, i] { order.push_back(i); });
  loop.run_until_idle();
  for (int i = 0; i < 100; ++i)
    CHECK(order[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("run_for runs what falls into the span and moves the clock to its end") {
  VirtualLoop loop;
  const TimePoint start = loop.now();
  int ran = 0;
  for (int i = 1; i <= 10; ++i)
    loop.schedule(start + seconds(i), [&] { ++ran; });
  loop.run_for(milliseconds(5500));
  CHECK(ran == 5);
  CHECK(loop.now() == start + milliseconds(5500));
  CHECK(loop.pending() == 5);
}

TEST_CASE("advance leaves what has become due for later, and late") {
  VirtualLoop loop;
  const TimePoint start = loop.now();
  TimePoint ran_at{};
  loop.schedule(start + seconds(1), [&] { ran_at = loop.now(); });
  loop.advance(seconds(10));
  CHECK(ran_at == TimePoint{});
  CHECK(loop.poll());
  CHECK(ran_at == start + seconds(10));
}

TEST_CASE("run_until_idle ends at its limit when tasks never end") {
  VirtualLoop loop;
  std::function<void()> tick = [&] { loop.schedule(loop.now() + seconds(1), [&] { tick(); }); };
  tick();
  CHECK_FALSE(loop.run_until_idle(seconds(100)));
  CHECK(loop.pending() == 1);
}

TEST_CASE("poll runs what is due now, and nothing that comes meanwhile") {
  VirtualLoop loop;
  int ran = 0;
  loop.post([&] {
    ++ran;
    loop.post([&] { ++ran; });
  });
  loop.schedule(loop.now() + seconds(1), [&] { ++ran; });
  CHECK(loop.poll());
  CHECK(ran == 1);
  CHECK(loop.poll());
  CHECK(ran == 2);
  CHECK_FALSE(loop.poll());
}

TEST_CASE("a cancelled task is destroyed at once and never runs") {
  VirtualLoop loop;
  auto token = std::make_shared<int>();
  const std::weak_ptr<int> watch = token;
  const TimerId timer = loop.schedule(loop.now(), [token = std::move(token)] { FAIL("it ran"); });
  CHECK(loop.cancel(timer));
  CHECK(watch.expired());
  CHECK_FALSE(loop.cancel(timer));
  CHECK_FALSE(loop.cancel(0));
  loop.run_until_idle();
}

TEST_CASE("a wait lets virtual time pass until it is ready") {
  VirtualLoop loop;
  const TimePoint start = loop.now();
  Waiter waiter;
  loop.schedule(start + hours(3), [&] { waiter.notify(); });
  loop.wait(waiter, std::nullopt);
  CHECK(waiter.ready());
  CHECK(loop.now() == start + hours(3));
}

TEST_CASE("a wait ends at its deadline, in virtual time") {
  VirtualLoop loop;
  const TimePoint start = loop.now();
  Waiter waiter;
  int ran = 0;
  loop.schedule(start + seconds(1), [&] { ++ran; });
  loop.schedule(start + seconds(3), [&] { ++ran; });
  loop.wait(waiter, start + seconds(2));
  CHECK_FALSE(waiter.ready());
  CHECK(ran == 1);
  CHECK(loop.now() == start + seconds(2));
}

TEST_CASE("a wait for what can never come throws instead of hanging") {
  VirtualLoop loop;
  Waiter waiter;
  CHECK_THROWS_AS(loop.wait(waiter, std::nullopt), VirtualDeadlock);
}

TEST_CASE("a wait ends after a day of virtual time, though something always happens") {
  VirtualLoop loop;
  const TimePoint begin = loop.now();
  std::function<void()> again = [&] { loop.schedule(loop.now() + seconds(1), again); };
  again();
  Waiter never;
  CHECK_THROWS_AS(loop.wait(never, std::nullopt), VirtualDeadlock);
  CHECK(loop.now() - begin <= hours(24));
  loop.wait(never, begin + hours(100));  // who says how long gets as long
  CHECK(loop.now() == begin + hours(100));
}

TEST_CASE("a task that waits runs the others, nested, up to a bound") {
  VirtualLoop loop;
  int deepest = 0;
  bool refused = false;
  std::function<void(int)> nest = [&](int depth) {
    deepest = depth;
    Waiter waiter;
    loop.post([&] {
      if (depth < 1000 && !refused) nest(depth + 1);
      waiter.notify();
    });
    try {
      loop.wait(waiter, std::nullopt);
    } catch (const Overloaded&) {
      refused = true;
      loop.cancel(0);
      loop.poll();
    }
  };
  nest(1);
  CHECK(refused);
  CHECK(deepest == 257);
}

TEST_CASE("a wait over virtual time calls the nested-wait hook once, first, and takes it away") {
  VirtualLoop loop;
  int called = 0;
  Loop::exchange_nested_wait_hook(
      {[](void* count) noexcept { ++*static_cast<int*>(count); }, &called});
  Waiter waiter;
  loop.post([&] {
    CHECK(called == 1);
    waiter.notify();
  });
  loop.wait(waiter, std::nullopt);
  CHECK(called == 1);
  CHECK(Loop::exchange_nested_wait_hook({}).hook == nullptr);
}

TEST_CASE("destroying a loop destroys its tasks, and what those schedule on their way") {
  auto token = std::make_shared<int>();
  const std::weak_ptr<int> watch = token;
  {
    VirtualLoop loop;
    struct Reposts {
      VirtualLoop* loop;
      std::shared_ptr<int> token;
      Reposts(VirtualLoop* to, std::shared_ptr<int> kept) : loop(to), token(std::move(kept)) {}
      Reposts(Reposts&& other) noexcept = default;
      ~Reposts() {
        if (token) loop->post([kept = token] {});
      }
      void operator()() const {}
    };
    loop.post(Reposts(&loop, std::move(token)));
  }
  CHECK(watch.expired());
}

TEST_CASE("the same seed draws the same numbers") {
  VirtualLoop one(5);
  VirtualLoop two(5);
  VirtualLoop three(6);
  const auto first = one.random()();
  CHECK(first == two.random()());
  CHECK(first != three.random()());
}

}  // namespace virtual_loop_test
}  // namespace batchrpc
