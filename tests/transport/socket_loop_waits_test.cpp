#include "batchrpc/transport/socket_loop.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "signal.hpp"
#include "transport/loop_steps.hpp"

namespace batchrpc::test {
namespace socket_loop_waits_test {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST_CASE("many threads wait at once, and each gets what it waits for", "[threads]") {
  for (const Duration lease :
       {Duration(microseconds(1)), Duration(milliseconds(1)), Duration(hours(1))}) {
    const auto loop = SocketLoop::start({.lease = lease});
    run_threads(5, [&](int) {
      for (int i = 0; i < 400; ++i)
        pass_through(*loop);
    });
  }
}

TEST_CASE("waits that other threads end, in any order", "[threads]") {
  const auto loop = SocketLoop::start();
  constexpr int kWaiting = 4;
  constexpr int kRounds = 500;
  std::mutex mutex;
  std::vector<Waiter*> waiters;
  std::atomic<int> ended{0};
  std::thread ender([&] {
    std::mt19937 random(5);
    while (ended < kWaiting * kRounds) {
      Waiter* chosen = nullptr;
      {
        const std::lock_guard lock(mutex);
        if (!waiters.empty()) {
          std::swap(waiters[random() % waiters.size()], waiters.back());
          chosen = waiters.back();
          waiters.pop_back();
        }
      }
      if (chosen == nullptr) {
        std::this_thread::yield();
        continue;
      }
      chosen->notify();
      ++ended;
    }
  });
  run_threads(kWaiting, [&](int) {
    for (int i = 0; i < kRounds; ++i) {
      Waiter waiter;
      {
        const std::lock_guard lock(mutex);
        waiters.push_back(&waiter);
      }
      wait_for(*loop, waiter);
    }
  });
  ender.join();
}

TEST_CASE("a wait that is ready returns at once, and one in vain at its deadline", "[threads]") {
  const auto loop = SocketLoop::start();
  Waiter ready;
  ready.notify();
  loop->wait(ready, std::nullopt);

  Waiter never;
  const TimePoint deadline = loop->now() + milliseconds(3);
  loop->wait(never, deadline);
  CHECK_FALSE(never.ready());
  CHECK(loop->now() >= deadline);

  // While another drives, too.
  Countdown other_waits(1);
  Waiter other;
  std::thread thread([&] {
    loop->post([&] { other_waits.arrive(); });
    wait_for(*loop, other);
  });
  other_waits.wait(*loop);
  loop->wait(never, loop->now() + milliseconds(3));
  CHECK_FALSE(never.ready());
  other.notify();
  thread.join();
}

TEST_CASE("a task may wait for other tasks, deep down, on a waiting thread and on the I/O thread",
          "[threads]") {
  const auto loop = SocketLoop::start();
  std::atomic<int> deepest{0};
  std::function<void(int)> nest = [&](int depth) {
    deepest = std::max(deepest.load(), depth);
    if (depth == 200) return;
    Countdown inner(1);
    loop->post([&, depth] {
      nest(depth + 1);
      inner.arrive();
    });
    inner.wait(*loop);
  };
  Countdown here(1);
  loop->post([&] {
    nest(1);
    here.arrive();
  });
  here.wait(*loop);
  CHECK(deepest == 200);

  deepest = 0;
  Waiter there;
  loop->post([&] {
    nest(1);
    there.notify();
  });
  sleep_for(there);
  CHECK(deepest == 200);
}

TEST_CASE("waits that nest without end are refused, and the loop lives on", "[threads]") {
  const auto loop = SocketLoop::start();
  std::atomic<bool> refused{false};
  std::atomic<int> deepest{0};
  std::function<void(int)> nest = [&](int depth) {
    deepest = depth;
    auto inner = std::make_shared<Countdown>(1);
    loop->post([&, inner, depth] {
      if (!refused) nest(depth + 1);
      inner->arrive();
    });
    try {
      inner->wait(*loop);
    } catch (const Overloaded& error) {
      refused = true;
      CHECK_THAT(error.what(), Catch::Contains("256"));
    }
  };
  Countdown done(1);
  loop->post([&] {
    nest(1);
    done.arrive();
  });
  done.wait(*loop);
  CHECK(refused);
  CHECK(deepest > 256);
  pass_through(*loop);
}

TEST_CASE("a task that waits on another loop does not stop its own", "[threads]") {
  const auto one = SocketLoop::start();
  const auto two = SocketLoop::start();
  for (int i = 0; i < 200; ++i) {
    Countdown done(1);
    one->post([&] {
      Waiter answered;
      two->post([&] { one->post([&] { answered.notify(); }); });
      wait_for(*two, answered);
      done.arrive();
    });
    done.wait(*one);
  }
}

TEST_CASE("a nested wait lets timers that are due go on", "[threads]") {
  const auto loop = SocketLoop::start();
  Countdown done(1);
  const TimePoint when = loop->now() + milliseconds(1);
  loop->schedule(when, [&] {
    Waiter second;
    loop->schedule(when, [&] { second.notify(); });
    wait_for(*loop, second);
    done.arrive();
  });
  done.wait(*loop);
}

TEST_CASE("a leaseholder's task waits for its next wait or poll", "[threads]") {
  const auto loop = SocketLoop::start({.lease = hours(1)});
  take_lease(*loop);
  std::atomic<bool> ran{false};
  loop->post([&] { ran = true; });
  CHECK_FALSE(ran);
  CHECK(loop->poll());
  CHECK(ran);
  ran = false;
  loop->post([&] { ran = true; });
  pass_through(*loop);
  CHECK(ran);
}

TEST_CASE("what other threads want ends a lease", "[threads]") {
  const auto loop = SocketLoop::start({.lease = hours(1)});
  for (int i = 0; i < 20; ++i) {
    take_lease(*loop);
    Waiter posted;
    std::thread([&] { loop->post([&] { posted.notify(); }); }).join();
    sleep_for(posted);

    take_lease(*loop);
    Waiter scheduled;
    std::thread([&] {
      loop->schedule(loop->now() + microseconds(100), [&] { scheduled.notify(); });
    }).join();
    sleep_for(scheduled);
  }
}

TEST_CASE("a task that another thread posted during a wait is not left to the lease", "[threads]") {
  const auto loop = SocketLoop::start({.lease = hours(1)});
  for (int i = 0; i < 200; ++i) {
    Waiter mine;
    Waiter late;
    std::thread thread([&] {
      loop->post([&] { mine.notify(); });
      loop->post([&] { late.notify(); });
    });
    wait_for(*loop, mine);
    sleep_for(late);
    thread.join();
  }
}

TEST_CASE("a lease that runs out gives the drive back to the I/O thread", "[threads]") {
  const auto loop = SocketLoop::start({.lease = microseconds(200)});
  for (int i = 0; i < 50; ++i) {
    take_lease(*loop);
    Waiter mine;
    loop->post([&] { mine.notify(); });  // by the leaseholder
    sleep_for(mine);
  }
}

TEST_CASE("poll drives only when nobody else does", "[threads]") {
  const auto loop = SocketLoop::start({.lease = hours(1)});
  take_lease(*loop);
  while (loop->poll()) {  // what is left of taking the lease
  }
  Waiter inside;
  Waiter polled;
  Waiter left;  // any thread that drives the loop may run the task
  std::thread other([&] {
    loop->post([&] {
      inside.notify();
      wait_for(*loop, polled);
      left.notify();
    });
    pass_through(*loop);
  });
  sleep_for(inside);
  CHECK_FALSE(loop->poll());
  polled.notify();
  sleep_for(left);
  other.join();
}

TEST_CASE("a wait calls the thread's nested-wait hook once, first, and takes it away",
          "[threads]") {
  const auto loop = SocketLoop::start();
  int called = 0;
  Countdown done(1);
  loop->post([&] {
    const auto outer = Loop::exchange_nested_wait_hook(
        {[](void* count) noexcept { ++*static_cast<int*>(count); }, &called});
    pass_through(*loop);
    pass_through(*loop);
    CHECK(called == 1);
    Loop::exchange_nested_wait_hook(outer);
    done.arrive();
  });
  done.wait(*loop);
}

}  // namespace socket_loop_waits_test
}  // namespace batchrpc::test
