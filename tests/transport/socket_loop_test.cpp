#include "batchrpc/transport/socket_loop.hpp"

#include <malloc.h>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <atomic>
#include <catch2/catch.hpp>
#include <latch>
#include <new>
#include <random>
#include <thread>
#include <vector>

#include "batchrpc/transport/unix_transport.hpp"
#include "signal.hpp"
#include "transport/loop_steps.hpp"

namespace batchrpc::test {
namespace socket_loop_test {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST_CASE("the I/O thread runs what is posted and scheduled while nobody waits", "[threads]") {
  const auto loop = SocketLoop::start();
  CHECK_FALSE(loop->is_driving());
  Waiter posted;
  std::atomic<bool> inside{false};
  loop->post([&] {
    inside = loop->is_driving();
    posted.notify();
  });
  sleep_for(posted);
  CHECK(inside);
  Waiter scheduled;
  loop->schedule(loop->now() + milliseconds(2), [&] { scheduled.notify(); });
  sleep_for(scheduled);
}

TEST_CASE("a task for which there is no memory fails alone, whichever way it came to the loop",
          "[threads]") {
  const auto loop = SocketLoop::start();
  const auto fail = [] { throw std::bad_alloc(); };
  loop->post(fail);
  loop->schedule(loop->now(), fail);
  Waiter last;
  loop->post([&] {
    loop->defer(fail);
    loop->defer([&] { loop->schedule(loop->now() + milliseconds(1), [&] { last.notify(); }); });
  });
  sleep_for(last);
}

TEST_CASE("posted tasks run one at a time, those of a thread in order", "[threads]") {
  const auto loop = SocketLoop::start();
  constexpr int kThreads = 4;
  constexpr int kTasks = 3000;
  std::atomic<int> inside{0};
  std::atomic<int> overlaps{0};
  std::array<int, kThreads> next{};
  std::atomic<int> disorder{0};
  Countdown done(kThreads * kTasks);
  run_threads(kThreads, [&](int thread) {
    for (int i = 0; i < kTasks; ++i) {
      loop->post([&, thread, i] {
        if (inside.fetch_add(1) != 0) ++overlaps;
        if (std::exchange(next[static_cast<std::size_t>(thread)], i + 1) != i) ++disorder;
        --inside;
        done.arrive();
      });
    }
    if (thread % 2 == 0) pass_through(*loop);
  });
  done.wait(*loop);
  CHECK(overlaps == 0);
  CHECK(disorder == 0);
}

TEST_CASE("timers run at their time, ordered, from whichever thread", "[threads]") {
  const auto loop = SocketLoop::start();
  const TimePoint start = loop->now();
  std::vector<int> order;
  Countdown done(50);
  std::vector<int> delays(50);
  for (int i = 0; i < 50; ++i)
    delays[static_cast<std::size_t>(i)] = 49 - i;
  std::atomic<int> early{0};
  std::latch scheduled(1);
  loop->post([&] { scheduled.wait(); });  // none runs before all are there
  for (const int delay : delays) {
    const TimePoint when = start + milliseconds(5) + microseconds(40 * delay);
    loop->schedule(when, [&, delay, when] {
      if (loop->now() < when) ++early;
      order.push_back(delay);
      done.arrive();
    });
  }
  scheduled.count_down();
  done.wait(*loop);
  CHECK(early == 0);
  CHECK(std::is_sorted(order.begin(), order.end()));
}

TEST_CASE("a timer either runs or is cancelled, never both", "[threads]") {
  const auto loop = SocketLoop::start();
  constexpr int kTimers = 3000;
  std::atomic<int> ran{0};
  std::atomic<int> cancelled{0};
  run_threads(3, [&](int thread) {
    std::mt19937 random(static_cast<unsigned>(thread));
    std::vector<TimerId> timers;
    for (int i = 0; i < kTimers; ++i) {
      timers.push_back(loop->schedule(loop->now() + microseconds(random() % 300), [&] { ++ran; }));
      if (random() % 2 == 0 && loop->cancel(timers[random() % timers.size()])) ++cancelled;
    }
    for (const TimerId timer : timers) {
      if (loop->cancel(timer)) ++cancelled;
    }
  });
  pass_through(*loop);
  CHECK(ran + cancelled == 3 * kTimers);
}

TEST_CASE("a million timers that are set and cancelled cost no memory", "[threads]") {
  const auto loop = SocketLoop::start();
  const auto round = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const TimerId timer = loop->schedule(loop->now() + hours(1), [] {});
      if (!loop->cancel(timer)) FAIL("it was gone");
    }
  };
  const auto allocated = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  round(1000);
  const std::size_t before = allocated();
  round(1'000'000);
  CHECK(allocated() <= before + 64 * 1024);
}

TEST_CASE("stop destroys what has not run, and what comes later", "[threads]") {
  const auto loop = SocketLoop::start({.lease = hours(1)});
  take_lease(*loop);
  auto token = std::make_shared<int>();
  std::atomic<bool> ran{false};
  loop->post([&ran, token] { ran = true; });
  loop->schedule(loop->now() + hours(1), [&ran, token] { ran = true; });
  loop->stop();
  loop->stop();
  loop->post([&ran, token] { ran = true; });
  CHECK(loop->schedule(loop->now(), [&ran, token] { ran = true; }) == 0);
  CHECK(token.use_count() == 1);
  CHECK_FALSE(ran);
  CHECK_FALSE(loop->poll());

  Waiter waiter;
  loop->wait(waiter, loop->now() + milliseconds(1));
  std::thread([&] { waiter.notify(); }).join();
  loop->wait(waiter, std::nullopt);
}

TEST_CASE("stop while threads wait leaves them asleep until they are ready", "[threads]") {
  for (int i = 0; i < 30; ++i) {
    const auto loop = SocketLoop::start();
    std::array<Waiter, 3> waiters;
    Countdown waiting(3);
    std::vector<std::thread> threads;
    for (Waiter& waiter : waiters) {
      threads.emplace_back([&] {
        loop->post([&] { waiting.arrive(); });
        loop->wait(waiter, std::nullopt);
      });
    }
    waiting.wait(*loop);
    loop->stop();
    for (Waiter& waiter : waiters)
      waiter.notify();
    for (std::thread& thread : threads)
      thread.join();
  }
}

TEST_CASE("a loop may be stopped, and its last handle dropped, by its own task", "[threads]") {
  for (const bool drop : {false, true}) {
    auto loop = SocketLoop::start();
    Waiter on_io_thread;
    std::latch posted(1);  // post() is over before its loop is
    loop->post([&] {
      posted.wait();
      drop ? loop.reset() : loop->stop();
      on_io_thread.notify();
    });
    posted.count_down();
    sleep_for(on_io_thread);

    loop = SocketLoop::start({.lease = hours(1)});  // the I/O thread leaves the task to this one
    SocketLoop& same = *loop;
    take_lease(same);
    Waiter on_waiting_thread;
    same.post([&] {
      drop ? loop.reset() : loop->stop();
      on_waiting_thread.notify();
    });
    wait_for(same, on_waiting_thread);
  }
}

TEST_CASE("an embedder's threads drive, and a task may wait on them", "[threads]") {
  for (const int count : {1, 3}) {
    asio::io_context context;
    auto work = asio::make_work_guard(context);
    const auto loop = SocketLoop::embed(context);
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i)
      threads.emplace_back([&] { context.run(); });

    CHECK_FALSE(loop->is_driving());
    pass_through(*loop);
    Countdown done(100);
    for (int i = 0; i < 100; ++i) {
      loop->post([&] {
        Waiter timer;
        loop->schedule(loop->now() + microseconds(50), [&] { timer.notify(); });
        wait_for(*loop, timer);
        pass_through(*loop);
        if (!loop->is_driving()) FAIL("not driving");
        done.arrive();
      });
    }
    done.wait(*loop);
    work.reset();
    for (std::thread& thread : threads)
      thread.join();
  }
}

TEST_CASE("an embedded loop runs its tasks in order, and one at a time, on however many threads",
          "[threads]") {
  asio::io_context context;
  const auto loop = SocketLoop::embed(context);
  std::vector<int> order;  // no lock
  for (int i = 0; i < 20'000; ++i)
    loop->post([&order, i] { order.push_back(i); });
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&context] { context.run(); });
  for (auto& thread : threads)
    thread.join();
  CHECK(order.size() == 20'000);
  CHECK(std::is_sorted(order.begin(), order.end()));
}

TEST_CASE("an embedder's context has run out of work when timers and sockets are gone") {
  asio::io_context context;
  const auto loop = SocketLoop::embed(context);
  int ran = 0;
  loop->schedule(loop->now() + microseconds(200),
                 [&] { loop->schedule(loop->now() + microseconds(200), [&] { ++ran; }); });
  context.run();
  CHECK(ran == 1);

  context.restart();
  UnixTransport transport(loop);
  auto listener = transport.listen(Address::parse("unix-abstract:batchrpc-test-work"),
                                   [](std::unique_ptr<Stream>) {});
  loop->schedule(loop->now() + microseconds(200), [&] { listener.reset(); });
  context.run();
  CHECK(listener == nullptr);
}

TEST_CASE("an embedded loop leaves nothing behind that runs after it") {
  asio::io_context context;
  auto loop = SocketLoop::embed(context);
  auto token = std::make_shared<int>();
  std::atomic<bool> ran{false};
  loop->post([&ran, token] { ran = true; });
  loop->schedule(loop->now(), [&ran, token] { ran = true; });
  loop.reset();
  context.run();
  CHECK_FALSE(ran);
  CHECK(token.use_count() == 1);
}

TEST_CASE("a storm of posts, timers, cancels and nested waits from many threads passes",
          "[threads]") {
  const auto loop = SocketLoop::start({.busy_poll = microseconds(20), .lease = microseconds(100)});
  std::atomic<int> expected{0};
  std::atomic<int> ran{0};
  run_threads(4, [&](int thread) {
    std::mt19937 random(static_cast<unsigned>(100 + thread));
    std::vector<TimerId> timers;
    for (int i = 0; i < 600; ++i) {
      switch (random() % 6) {
        case 0:
          ++expected;
          loop->post([&] { ++ran; });
          break;
        case 1:
          timers.push_back(loop->schedule(loop->now() + microseconds(random() % 2000), [] {}));
          break;
        case 2:
          if (!timers.empty()) loop->cancel(timers[random() % timers.size()]);
          break;
        case 3:
          pass_through(*loop);
          break;
        case 4: {
          ++expected;
          Countdown nested(1);
          loop->post([&] {
            pass_through(*loop);
            ++ran;
            nested.arrive();
          });
          nested.wait(*loop);
          break;
        }
        default:
          loop->poll();
          break;
      }
    }
    pass_through(*loop);
  });
  pass_through(*loop);
  CHECK(ran == expected);
}

}  // namespace socket_loop_test
}  // namespace batchrpc::test
