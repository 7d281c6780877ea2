#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "batchrpc/future/promise.hpp"
#include "batchrpc/transport/socket_loop.hpp"
#include "batchrpc/transport/virtual_loop.hpp"

namespace batchrpc {
namespace defer_test {

TEST_CASE("a deferred task runs on the driving thread, behind what was posted before",
          "[threads]") {
  const auto loop = SocketLoop::start();
  Promise<std::vector<int>> promise;
  auto future = promise.get_future();
  loop->post([&] {
    auto order = std::make_shared<std::vector<int>>();
    loop->post([order] { order->push_back(1); });
    loop->defer([&, order] {
      order->push_back(2);
      promise.set_value(loop->is_driving() ? *order : std::vector<int>());
    });
  });
  CHECK(future.get() == std::vector<int>{1, 2});
}

TEST_CASE("a task that another thread defers is run soon, as if it was posted", "[threads]") {
  const auto loop = SocketLoop::start();
  for (int i = 0; i < 100; ++i) {
    Promise<int> promise;
    auto future = promise.get_future();
    loop->defer([&promise, i] { promise.set_value(i); });
    CHECK(future.get() == i);
  }
}

TEST_CASE("deferred tasks run in their order, each once, also when one waits for another",
          "[threads]") {
  const auto loop = SocketLoop::start();
  Promise<std::vector<int>> promise;
  auto future = promise.get_future();
  loop->post([&] {
    auto order = std::make_shared<std::vector<int>>();
    auto second = std::make_shared<Promise<void>>();
    loop->defer([order, done = std::make_shared<Future<void>>(second->get_future())] {
      done->get();
      order->push_back(1);
    });
    loop->defer([order, second] {
      order->push_back(2);
      second->set_value();
    });
    loop->defer([order, &promise] {
      order->push_back(3);
      promise.set_value(*order);
    });
  });
  CHECK(future.get() == std::vector<int>{2, 1, 3});
}

TEST_CASE("a deferred task has its turn also while tasks are posted without end", "[threads]") {
  const auto loop = SocketLoop::start();
  Promise<void> promise;
  auto future = promise.get_future();
  std::atomic<bool> enough{false};
  std::function<void()> again = [&] {
    if (!enough) loop->post([&] { again(); });
  };
  loop->post([&] {
    again();
    loop->defer([&] {
      enough = true;
      promise.set_value();
    });
  });
  future.get();
  loop->stop();
}

TEST_CASE("a loop that ends destroys what was deferred and has not run", "[threads]") {
  auto loop = SocketLoop::start();
  Promise<bool> promise;
  auto destroyed = promise.get_future();
  loop->post([loop, &promise] {
    auto token = std::make_shared<int>();
    const std::weak_ptr<int> alive = token;
    loop->defer([loop, token = std::move(token)] {});
    loop->stop();
    promise.set_value(alive.expired());
  });
  CHECK(destroyed.get());
}

TEST_CASE("the coarse clock is behind the other, and not far", "[threads]") {
  const auto loop = SocketLoop::start();
  const TimePoint coarse = loop->coarse_now();
  const TimePoint exact = loop->now();
  CHECK(coarse <= exact);
  CHECK(exact - coarse < std::chrono::seconds(10));
  const VirtualLoop test_loop;
  CHECK(test_loop.coarse_now() == test_loop.now());
}

}  // namespace defer_test
}  // namespace batchrpc
