#include "transport/turn.hpp"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <latch>
#include <vector>

namespace batchrpc::detail {
namespace {

TEST_CASE("a task runs at once on a thread that finds nobody at it, nested tasks too") {
  Turn turn;
  std::vector<int> order;
  CHECK_FALSE(turn.is_mine());
  turn.run([&] {
    CHECK(turn.is_mine());
    turn.run([&] { order.push_back(1); });
    order.push_back(2);
  });
  CHECK_FALSE(turn.is_mine());
  CHECK(order == std::vector{1, 2});
}

TEST_CASE("what other threads bring is run by the one whose turn it is, in order") {
  Turn turn;
  std::vector<int> order;
  std::vector<std::thread::id> where;
  const auto here = std::this_thread::get_id();
  turn.run([&] {
    for (int i = 0; i < 5; ++i) {
      std::thread([&, i] {
        turn.run([&, i] {
          order.push_back(i);
          where.push_back(std::this_thread::get_id());
        });
      }).join();
    }
    CHECK(order.empty());
  });
  CHECK(order == std::vector{0, 1, 2, 3, 4});
  CHECK(std::all_of(where.begin(), where.end(), [here](auto id) { return id == here; }));
}

TEST_CASE("while a task pauses others have their turn, and its own thread runs what had waited") {
  Turn turn;
  std::vector<int> order;
  turn.run([&] {
    std::thread([&] { turn.run([&] { order.push_back(1); }); }).join();
    const Turn::Pause pause(turn);
    CHECK_FALSE(turn.is_mine());
    CHECK(order == std::vector{1});
    std::thread([&] { turn.run([&] { order.push_back(2); }); }).join();
    CHECK(order == std::vector{1, 2});
    turn.run([&] { order.push_back(3); });
  });
  CHECK(order == std::vector{1, 2, 3});
  const Turn::Pause outside(turn);  // of nothing
}

TEST_CASE("who comes back from a pause waits for the task that runs") {
  Turn turn;
  std::vector<int> order;
  std::latch other_runs(1);
  std::atomic<bool> comes_back{false};
  std::thread other;
  turn.run([&] {
    {
      const Turn::Pause pause(turn);
      other = std::thread([&] {
        turn.run([&] {
          other_runs.count_down();
          while (!comes_back)
            std::this_thread::yield();
          order.push_back(1);
        });
      });
      other_runs.wait();
      CHECK_FALSE(turn.is_mine());
      comes_back = true;
    }
    CHECK(turn.is_mine());
    order.push_back(2);
  });
  other.join();
  CHECK(order == std::vector{1, 2});
}

TEST_CASE("of many threads that run tasks and pause within them, one is inside at any time") {
  Turn turn;
  int inside = 0;  // not atomic: the thread sanitizer looks on
  int done = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        turn.run([&, i] {
          ++inside;
          --inside;
          if (i % 3 == 0) {
            const Turn::Pause pause(turn);
            turn.run([&] { ++inside, --inside; });
          }
          ++done;
        });
      }
    });
  }
  for (auto& thread : threads)
    thread.join();
  turn.run([] {});
  CHECK(inside == 0);
  CHECK(done == 4 * 2000);
}

}  // namespace
}  // namespace batchrpc::detail
