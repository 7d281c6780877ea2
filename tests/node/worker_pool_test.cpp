#include "dispatch/worker_pool.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <latch>
#include <set>

#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"
#include "batchrpc/transport/socket_loop.hpp"

namespace batchrpc {
namespace worker_pool_test {

struct Pool {
  explicit Pool(int threads) : pool(std::make_shared<WorkerPool>(threads, loop)) {}
  ~Pool() { pool->stop(std::chrono::seconds(10)); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Posts a task; its future has what the task returned.
  template <class F>
  auto run(F task) {
    using R = decltype(task());
    Promise<R> promise;
    auto future = promise.get_future();
    pool->post([task = std::move(task), promise = std::move(promise)]() mutable {
      if constexpr (std::is_void_v<R>) {
        task();
        promise.set_value();
      } else {
        promise.set_value(task());
      }
    });
    return future;
  }

  std::shared_ptr<SocketLoop> loop = SocketLoop::start();
  std::shared_ptr<WorkerPool> pool;
};

TEST_CASE("tasks run on the pool's own threads", "[threads]") {
  Pool pool(2);
  CHECK_FALSE(pool.pool->is_worker());
  CHECK(pool.run([&] { return pool.pool->is_worker(); }).get());
  Pool other(1);
  CHECK_FALSE(other.run([&] { return pool.pool->is_worker(); }).get());
}

TEST_CASE("one worker runs tasks in their order, several run as many at once", "[threads]") {
  Pool one(1);
  std::vector<int> order;
  for (int i = 0; i < 100; ++i)
    one.pool->post([&order, i] { order.push_back(i); });
  one.run([] {}).get();
  CHECK(order.size() == 100);
  CHECK(std::is_sorted(order.begin(), order.end()));

  Pool four(4);
  std::latch together(4);  // hangs unless four tasks run at the same time
  std::vector<Future<void>> all;
  for (int i = 0; i < 4; ++i)
    all.push_back(four.run([&together] { together.arrive_and_wait(); }));
  for (auto& future : all)
    future.get();
}

TEST_CASE("a worker that waits for a future runs the task that completes it", "[threads]") {
  Pool pool(1);
  const int result = pool.run([&pool] { return pool.run([] { return 7; }).get(); }).get();
  CHECK(result == 7);
}

TEST_CASE("waits within waits run on one worker, 64 deep and deeper", "[threads]") {
  for (const int depth : {64, 120}) {
    Pool pool(1);
    std::function<int(int)> descend = [&](int level) -> int {
      if (level == 0) return 0;
      return 1 + pool.run([&descend, level] { return descend(level - 1); }).get();
    };
    CHECK(pool.run([&] { return descend(depth); }).get() == depth);
  }
}

TEST_CASE("a worker that waits takes tasks that come while it sleeps", "[threads]") {
  Pool pool(1);
  Promise<int> outer;
  std::latch waiting(1);
  auto future = pool.run([&, f = std::make_shared<Future<int>>(outer.get_future())] {
    waiting.count_down();
    return f->get();
  });
  waiting.wait();
  for (int i = 0; i < 100; ++i)
    CHECK(pool.run([i] { return i; }).get() == i);  // its only worker waits
  outer.set_value(5);
  CHECK(future.get() == 5);
}

TEST_CASE(
    "of two tasks that come at once, a sleeping waiter takes the one that the idle worker does "
    "not",
    "[threads]") {
  Pool pool(2);
  Promise<void> outer;
  std::latch waiting(1);
  auto waits = pool.run([&, f = std::make_shared<Future<void>>(outer.get_future())] {
    waiting.count_down();
    f->get();
  });
  waiting.wait();
  for (int round = 0; round < 200; ++round) {
    // Two tasks that need each other: neither a worker that is idle nor one that waits may be left
    // out.
    auto both = std::make_shared<std::latch>(2);
    auto first = pool.run([both] { both->arrive_and_wait(); });
    auto second = pool.run([both] { both->arrive_and_wait(); });
    first.get();
    second.get();
  }
  outer.set_value();
  waits.get();
}

TEST_CASE("a waiter that is called up, and ready before it looks, leaves the task to another",
          "[threads]") {
  Pool pool(2);
  for (int round = 0; round < 200; ++round) {
    Promise<void> x;
    Promise<void> y;
    std::latch both_wait(2);
    std::latch x_is_set(1);
    auto waits_for_x = pool.run([&, f = std::make_shared<Future<void>>(x.get_future())] {
      both_wait.count_down();
      f->get();
    });
    auto waits_for_y = pool.run([&, f = std::make_shared<Future<void>>(y.get_future())] {
      both_wait.count_down();
      f->get();
      x_is_set.wait();  // hangs unless the other worker runs the task
    });
    both_wait.wait();
    std::this_thread::sleep_for(std::chrono::microseconds(round));
    pool.pool->post([&] {
      x.set_value();
      x_is_set.count_down();
    });
    y.set_value();
    waits_for_x.get();
    waits_for_y.get();
  }
}

TEST_CASE("a wait with a deadline ends at it, whatever there is to do", "[threads]") {
  Pool pool(1);
  const bool ready = pool.run([] {
                           Promise<int> never;
                           auto future = never.get_future();
                           return future.wait_for(std::chrono::milliseconds(5));
                         })
                         .get();
  CHECK_FALSE(ready);
}

TEST_CASE("a pool that stops lets running tasks finish and drops the others", "[threads]") {
  auto loop = SocketLoop::start();
  auto pool = std::make_shared<WorkerPool>(1, loop);
  std::atomic<int> ran{0};
  auto dropped = std::make_shared<int>();
  std::latch running(1);
  Promise<void> go;
  pool->post([&, f = std::make_shared<Future<void>>(go.get_future()), pool] {
    running.count_down();
    f->wait();
    ++ran;
  });
  running.wait();
  std::thread stopper([&] { pool->stop(std::chrono::seconds(10)); });
  while (pool.use_count() > 100)
    std::this_thread::yield();
  go.set_value();
  stopper.join();
  CHECK(ran == 1);
  pool->post([dropped] {});
  CHECK(dropped.use_count() == 1);
}

TEST_CASE("tasks that post tasks, from four threads, all run", "[threads]") {
  Pool pool(3);
  std::atomic<int> count{0};
  constexpr int kEach = 500;
  std::vector<std::thread> threads;
  std::latch all(4 * kEach * 2);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        pool.pool->post([&] {
          pool.pool->post([&] {
            ++count;
            all.count_down();
          });
          ++count;
          all.count_down();
        });
      }
    });
  }
  for (auto& thread : threads)
    thread.join();
  all.wait();
  CHECK(count == 4 * kEach * 2);
}

}  // namespace worker_pool_test
}  // namespace batchrpc
