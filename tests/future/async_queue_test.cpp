#include "batchrpc/future/async_queue.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "batchrpc/base/error.hpp"
#include "batchrpc/future/coroutine.hpp"

using namespace batchrpc;

namespace async_queue_test {

template <class T>
bool is_shut_down(Future<T> future) {
  try {
    std::move(future).get();
  } catch (const ShutDown&) {
    return true;
  }
  return false;
}

TEST_CASE("Items leave a queue in the order in which they came") {
  AsyncQueue<int> queue(8);
  CHECK(queue.capacity() == 8);
  for (int i = 0; i < 3; ++i)
    CHECK(queue.push(i).ready());
  CHECK(queue.size() == 3);
  for (int i = 0; i < 3; ++i)
    CHECK(queue.pop().get() == i);
  CHECK(queue.size() == 0);
  CHECK_FALSE(queue.try_pop());
}

TEST_CASE("A push waits for room, and those that wait get in by turns") {
  AsyncQueue<std::unique_ptr<int>> queue(1);
  REQUIRE(queue.push(std::make_unique<int>(0)).ready());
  auto first = queue.push(std::make_unique<int>(1));
  auto second = queue.push(std::make_unique<int>(2));
  CHECK_FALSE(first.ready());
  CHECK(*queue.pop().get() == 0);
  CHECK(first.ready());
  CHECK_FALSE(second.ready());
  CHECK(**queue.try_pop() == 1);
  CHECK(second.ready());
  CHECK(*queue.pop().get() == 2);
}

TEST_CASE("A push whose future is dropped still gets in") {
  AsyncQueue<int> queue(1);
  queue.push(0);
  { const auto dropped = queue.push(1); }
  CHECK(queue.pop().get() == 0);
  CHECK(queue.pop().get() == 1);
}

TEST_CASE("A pop waits for an item, and those that wait get them by turns") {
  AsyncQueue<int> queue(1);
  auto first = queue.pop();
  auto second = queue.pop();
  auto third = queue.pop();
  CHECK(queue.push(1).ready());
  CHECK(queue.try_push(2));
  CHECK(first.get() == 1);
  CHECK(second.get() == 2);
  CHECK_FALSE(third.ready());
  CHECK(queue.size() == 0);
}

TEST_CASE("A pop whose future is dropped takes no item") {
  AsyncQueue<int> queue(4);
  std::optional<Future<int>> dropped(queue.pop());
  auto second = queue.pop();
  dropped.reset();
  queue.push(1);
  CHECK(second.get() == 1);
  { const auto only = queue.pop(); }
  CHECK(queue.try_push(2));
  CHECK(queue.size() == 1);
  CHECK(queue.pop().get() == 2);
}

TEST_CASE("try_push leaves the item as it was if there is no room") {
  AsyncQueue<std::unique_ptr<int>> queue(1);
  CHECK(queue.try_push(std::make_unique<int>(1)));
  auto item = std::make_unique<int>(2);
  CHECK_FALSE(queue.try_push(std::move(item)));
  REQUIRE(item);  // NOLINT: it was not moved
  CHECK(*queue.pop().get() == 1);
  queue.close();
  CHECK_FALSE(queue.try_push(std::move(item)));
  CHECK(item);  // NOLINT
}

TEST_CASE("A closed queue gives what it has, and fails those that wait") {
  AsyncQueue<int> queue(1);
  queue.push(1);
  auto waiting = queue.push(2);
  queue.close();
  queue.close();
  CHECK(is_shut_down(std::move(waiting)));
  CHECK(is_shut_down(queue.push(3)));
  CHECK(queue.pop().get() == 1);
  CHECK(is_shut_down(queue.pop()));

  auto gone = std::make_unique<AsyncQueue<int>>(1);
  auto taker = gone->pop();
  gone.reset();
  CHECK(is_shut_down(std::move(taker)));
}

TEST_CASE("A queue without room is refused") {
  CHECK_THROWS_AS(AsyncQueue<int>(0), InvalidArgument);
}

Future<void> produce(AsyncQueue<int>& queue, int from, int to) {
  for (int i = from; i < to; ++i)
    co_await queue.push(i);
}

TEST_CASE("What four threads push, four threads take, each item once", "[threads]") {
  constexpr int kEach = 5000;
  AsyncQueue<int> queue(7);
  std::vector<std::thread> threads;
  std::vector<long> sums(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&queue, t] { produce(queue, t * kEach, (t + 1) * kEach).get(); });
    threads.emplace_back([&queue, &sum = sums[static_cast<std::size_t>(t)]] {
      for (int i = 0; i < kEach; ++i)
        sum += queue.pop().get();
    });
  }
  for (auto& thread : threads)
    thread.join();
  const long all = 4L * kEach;
  CHECK(std::accumulate(sums.begin(), sums.end(), 0L) == all * (all - 1) / 2);
  CHECK(queue.size() == 0);
}

}  // namespace async_queue_test
