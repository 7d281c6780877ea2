#include <atomic>
#include <catch2/catch.hpp>
#include <latch>
#include <random>
#include <thread>
#include <vector>

#include "batch/batching.hpp"
#include "batchrpc/batch/batcher.hpp"
#include "long_tests.hpp"
#include "node/real_nodes.hpp"

// A batcher used by many threads at once, for the thread sanitizer above all.
namespace batchrpc {
namespace batch_threads_test {

using namespace std::chrono_literals;
using test::outcome;

/// What `threads` threads do at once.
template <class Work>
void in_threads(int threads, const Work& work) {
  std::latch start(threads);
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&, i] {
      start.arrive_and_wait();
      work(i);
    });
  }
  for (std::thread& thread : all)
    thread.join();
}

TEST_CASE(
    "rows of many threads, whose settings change meanwhile, come back to those that sent them",
    "[threads]") {
  const int rows = test::times(2'000, 50'000);
  std::atomic<int> running{0};
  std::atomic<bool> too_many{false};
  const Batcher<int(int)> batcher(
      {.max_size = 16, .max_queue = 256, .on_full = OnFull::wait},
      [&](std::vector<int> xs) {
        if (running.fetch_add(1) > 3) too_many = true;
        for (int& x : xs)
          x = x * 3 + 1;
        running.fetch_sub(1);
        return xs;
      },
      {.key = [](int x) { return x % 2; }, .priority = [](int x) { return x % 3; }});
  std::atomic<int> wrong{0};
  in_threads(5, [&](int thread) {
    std::mt19937 random(static_cast<unsigned>(thread));
    if (thread == 0) {
      for (int i = 0; i < rows / 20; ++i) {
        BatchOptions options = batcher.options();
        options.max_size = 1 + random() % 32;
        options.max_wait = std::chrono::microseconds(random() % 3 * 50);
        options.parallelism = 1 + random() % 4;
        batcher.set_options(options);
        if (i % 3 == 0) batcher.pause();
        batcher.flush();
        (void)batcher.statistics();
        batcher.resume();
      }
      batcher.set_options({.max_size = 16, .max_queue = 256, .on_full = OnFull::wait});
      return;
    }
    std::vector<Future<int>> waiting;
    for (int i = 0; i < rows; ++i) {
      std::stop_source stop;
      auto future = batcher.with({.stop = stop.get_token()})(i);
      if (i % 16 == 0) stop.request_stop();
      waiting.push_back(std::move(future));
      if (waiting.size() < 8) continue;
      for (std::size_t k = 0; k < waiting.size(); ++k) {
        const int x = i - static_cast<int>(waiting.size() - 1 - k);
        const auto result = outcome(std::move(waiting[k]));
        const bool fine =
            result ? *result == x * 3 + 1 : result.code() == ErrorCode::cancelled && x % 16 == 0;
        if (!fine) ++wrong;
      }
      waiting.clear();
    }
    for (auto& future : waiting)
      (void)outcome(std::move(future));
  });
  CHECK(wrong == 0);
  CHECK_FALSE(too_many);
  batcher.close(BatchClose::drain).get();
  const BatchStatistics s = batcher.statistics();
  CHECK(s.rows == s.answered + s.cancelled);
  CHECK(s.rows == static_cast<std::uint64_t>(4 * rows));
}

TEST_CASE("a batcher is closed, or dropped, while threads bring rows", "[threads]") {
  for (int round = 0; round < test::times(30, 500); ++round) {
    auto batcher = std::make_unique<Batcher<int(int)>>(BatchOptions{.max_size = 4},
                                                       [](std::vector<int> xs) { return xs; });
    std::atomic<int> wrong{0};
    in_threads(3, [&, copy = *batcher](int thread) {
      if (thread == 0) {
        std::this_thread::yield();
        if (round % 2 == 0) {
          copy.close(round % 4 == 0 ? BatchClose::drain : BatchClose::fail).get();
        } else {
          batcher.reset();
        }
        return;
      }
      for (int i = 0; i < 50; ++i) {
        const auto result = outcome(copy(i));
        if (result ? *result != i : result.code() != ErrorCode::shut_down) ++wrong;
      }
    });
    REQUIRE(wrong == 0);
  }
}

struct Total {
  void begin() { total = 0; }
  void accumulate(int x) { total += x; }
  long finish(const BatchInfo& info) {
    rows += static_cast<long>(info.rows);
    all += total;
    return total;
  }
  long total = 0;
  long rows = 0;
  long all = 0;
};

TEST_CASE("a reducer adds up what threads bring, each row once", "[threads]") {
  const int rows = test::times(1'000, 20'000);
  auto total = std::make_shared<Total>();
  struct Shared {
    void begin() { total->begin(); }
    void accumulate(int x) { total->accumulate(x); }
    long finish(const BatchInfo& info) { return total->finish(info); }
    std::shared_ptr<Total> total;
  };
  const Batcher<long(int)> batcher({.max_size = 8, .max_queue = 64, .on_full = OnFull::wait},
                                   reduce(Shared{total}));
  in_threads(4, [&](int) {
    for (int i = 0; i < rows; ++i)
      (void)batcher(1).get();
  });
  batcher.close(BatchClose::drain).get();
  CHECK(total->rows == 4 * rows);
  CHECK(total->all == 4 * rows);
}

TEST_CASE("peers over sockets call one batcher and its form for many rows, on workers",
          "[threads]") {
  test::RealPair pair(2);
  std::atomic<int> running{0};
  std::atomic<bool> concurrent{false};
  const Batcher<int(int)> batcher({.max_size = 8}, [&](std::vector<int> xs) {
    if (running.fetch_add(1) > 0) concurrent = true;
    for (int& x : xs)
      x += 1000;
    running.fetch_sub(1);
    return xs;
  });
  pair.a.expose("one", batcher);
  pair.a.expose("many", batcher.many());
  std::atomic<int> wrong{0};
  in_threads(4, [&](int thread) {
    for (int i = 0; i < test::times(200, 5'000); ++i) {
      if (thread % 2 == 0) {
        if (pair.b.call<int(int)>("a", "one", i).get() != i + 1000) ++wrong;
      } else {
        const auto sums =
            pair.b.call<std::vector<int>(std::vector<int>)>("a", "many", std::vector<int>{i, i + 1})
                .get();
        if (sums != std::vector<int>{i + 1000, i + 1001}) ++wrong;
      }
    }
  });
  CHECK(wrong == 0);
  CHECK_FALSE(concurrent);
}

}  // namespace batch_threads_test
}  // namespace batchrpc
