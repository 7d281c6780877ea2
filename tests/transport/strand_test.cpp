#include "transport/strand.hpp"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <latch>
#include <vector>

namespace batchrpc::detail {
namespace turn_test {

/// Tasks for later, on whichever thread runs them.
class Later {
 public:
  [[nodiscard]] std::function<void(Task)> post() {
    return [this](Task task) {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    };
  }
  void run() {
    for (;;) {
      Task task;
      {
        const std::lock_guard lock(mutex_);
        if (tasks_.empty()) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task();
    }
  }

 private:
  std::mutex mutex_;
  std::deque<Task> tasks_;
};

TEST_CASE("a task runs at once on a thread that finds nobody at it, nested tasks too") {
  Later later;
  Strand turn{later.post()};
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

TEST_CASE("what other threads bring is run by the one whose turn it is, in order", "[threads]") {
  Later later;
  Strand turn{later.post()};
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

TEST_CASE("a thread is not kept by what others bring while it ends its turn", "[threads]") {
  Later later;
  Strand turn{later.post()};
  int ran = 0;
  std::function<void()> again = [&] {
    std::thread([&] { turn.run([&] { again(); }); }).join();
    ++ran;
  };
  turn.run([&] { again(); });
  CHECK(ran == 2);  // its own, and what waited when that had run
  turn.run([&] { ran += 100; });
  CHECK(ran == 2);  // behind what waits
  again = [&] { ++ran; };
  later.run();
  CHECK(ran == 103);
}

TEST_CASE("while a task pauses others have their turn, and its own thread runs what had waited",
          "[threads]") {
  Later later;
  Strand turn{later.post()};
  std::vector<int> order;
  turn.run([&] {
    std::thread([&] { turn.run([&] { order.push_back(1); }); }).join();
    const Driven::Suspension pause;
    CHECK_FALSE(turn.is_mine());
    CHECK(order == std::vector{1});
    std::thread([&] { turn.run([&] { order.push_back(2); }); }).join();
    CHECK(order == std::vector{1, 2});
    turn.run([&] { order.push_back(3); });
  });
  CHECK(order == std::vector{1, 2, 3});
  const Driven::Suspension outside;  // of nothing
}

TEST_CASE("who comes back from a pause waits for the task that runs", "[threads]") {
  Later later;
  Strand turn{later.post()};
  std::vector<int> order;
  std::latch other_runs(1);
  std::atomic<bool> comes_back{false};
  std::thread other;
  turn.run([&] {
    {
      const Driven::Suspension pause;
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

TEST_CASE("of many threads that run tasks and pause within them, one is inside at any time",
          "[threads]") {
  Later later;
  Strand turn{later.post()};
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
            const Driven::Suspension pause;
            turn.run([&] { ++inside, --inside; });
          }
          ++done;
        });
      }
    });
  }
  for (auto& thread : threads)
    thread.join();
  later.run();
  CHECK(inside == 0);
  CHECK(done == 4 * 2000);
}

}  // namespace turn_test
}  // namespace batchrpc::detail
