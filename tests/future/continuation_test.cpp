#include "batchrpc/future/continuation.hpp"

#include <catch2/catch.hpp>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/base/executor.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"

using namespace batchrpc;

namespace continuation_test {

/// Runs what was posted when it is told to.
class ManualExecutor final : public Executor {
 public:
  void post(Task task) override { tasks.push_back(std::move(task)); }

  std::size_t run() {
    std::size_t ran = 0;
    for (; !tasks.empty(); ++ran) {
      Task task = std::move(tasks.front());
      tasks.pop_front();
      running = true;
      task();
      running = false;
    }
    return ran;
  }

  std::deque<Task> tasks;
  bool running = false;
};

class RefusingExecutor final : public Executor {
 public:
  void post(Task /*task*/) override { throw std::runtime_error("no room"); }
};

TEST_CASE("then() on an executor runs the callback there") {
  ManualExecutor executor;
  Promise<int> promise;
  bool on_executor = false;
  auto future = promise.get_future().then(executor, [&](int v) {
    on_executor = executor.running;
    return v + 1;
  });
  CHECK(executor.tasks.empty());
  promise.set_value(1);
  CHECK_FALSE(future.ready());
  CHECK(executor.run() == 1);
  CHECK(on_executor);
  CHECK(future.get() == 2);
}

TEST_CASE("Errors that pass a callback by arrive on its executor as well") {
  ManualExecutor executor;
  bool on_executor = false;
  make_failed_future<int>(TimedOut("late"))
      .then(executor, [](int) { FAIL("called without a value"); })
      .on_error([&](std::exception_ptr) { on_executor = executor.running; });
  executor.run();
  CHECK(on_executor);
}

TEST_CASE("A callback on an executor may take a Result, return a future, throw") {
  ManualExecutor executor;
  const auto ready = make_ready_future(1);
  Promise<int> inner;
  auto result = ready.then(executor, [](Result<int> r) { return r.has_value(); });
  auto flattened = ready.then(executor, [&](int) { return inner.get_future(); });
  auto thrown = ready.then(executor, [](int) { throw 42; });
  CHECK(executor.run() == 3);
  CHECK(result.get());
  CHECK_FALSE(flattened.ready());
  inner.set_value(2);
  CHECK(flattened.get() == 2);
  CHECK_THROWS_AS(thrown.get(), int);
}

TEST_CASE("A shared executor is kept until the callback is posted, not longer") {
  auto executor = std::make_shared<ManualExecutor>();
  const std::weak_ptr<ManualExecutor> watch = executor;
  Promise<int> promise;
  auto future = promise.get_future().then(executor, [](int v) { return v; });
  std::shared_ptr<Executor> base = executor;
  auto second = future.then(base, [](int v) { return v; });
  base.reset();
  auto* const raw = executor.get();
  executor.reset();
  REQUIRE_FALSE(watch.expired());
  promise.set_value(1);
  REQUIRE_FALSE(watch.expired());
  // The second callback holds the executor while the first one's task runs on it.
  const auto held = watch.lock();
  raw->run();
  CHECK(second.get() == 1);
  CHECK(held.use_count() == 1);
}

TEST_CASE("An executor that destroys a callback breaks its promise") {
  bool destroyed = false;
  struct Guard {
    explicit Guard(bool* f) : flag(f) {}
    Guard(Guard&& other) noexcept : flag(std::exchange(other.flag, nullptr)) {}
    ~Guard() {
      if (flag != nullptr) *flag = true;
    }
    bool* flag;
  };
  ManualExecutor executor;
  auto dropped = make_ready_future(1).then(executor, [guard = Guard(&destroyed)](int) {});
  CHECK_FALSE(destroyed);
  executor.tasks.clear();
  CHECK(destroyed);
  CHECK_THROWS_AS(dropped.get(), BrokenPromise);

  RefusingExecutor refusing;
  auto refused = make_ready_future(1).then(refusing, [](int) {});
  CHECK_THROWS_AS(refused.get(), BrokenPromise);
}

TEST_CASE("On an executor an lvalue's callback has a copy, an rvalue's the value itself") {
  ManualExecutor executor;
  auto future = make_ready_future(std::string("text"));
  auto first = future.then(executor, [](std::string&& v) { return std::move(v) + "1"; });
  auto second = future.then(executor, [](const std::string& v) { return v + "2"; });
  CHECK(std::move(future).get() == "text");  // nobody reads it any more
  executor.run();
  CHECK(first.get() == "text1");
  CHECK(second.get() == "text2");

  auto moved =
      make_ready_future(std::make_unique<int>(3)).then(executor, [](auto v) { return *v; });
  executor.run();
  CHECK(moved.get() == 3);
}

TEST_CASE("Callbacks attached behind an executor's run there, in order") {
  ManualExecutor executor;
  std::vector<int> order;
  auto future = make_ready_future().then(executor, [&] { order.push_back(1); });
  future.then([&] { order.push_back(executor.running ? 2 : -2); });
  future.then(executor, [&] { order.push_back(4); });
  future.then([&] { order.push_back(3); });
  CHECK(executor.run() == 2);
  CHECK(order == std::vector<int>{1, 2, 3, 4});
}

TEST_CASE("Whether a callback takes a Result is decided by its parameter") {
  using detail::kTakesResult;
  constexpr auto value = [](int) {};
  constexpr auto result = [](Result<int>) {};
  constexpr auto result_reference = [](const Result<int>&) noexcept {};
  constexpr auto mutable_result = [](Result<int>&&) mutable {};
  constexpr auto generic = [](auto) {};
  CHECK_FALSE(kTakesResult<std::remove_const_t<decltype(value)>, int, true>);
  CHECK(kTakesResult<std::remove_const_t<decltype(result)>, int, true>);
  CHECK(kTakesResult<std::remove_const_t<decltype(result_reference)>, int, false>);
  CHECK(kTakesResult<std::remove_const_t<decltype(mutable_result)>, int, true>);
  CHECK_FALSE(kTakesResult<std::remove_const_t<decltype(generic)>, int, true>);
  CHECK(kTakesResult<int (*)(Result<int>), int, true>);
  CHECK(kTakesResult<UniqueFunction<void(Result<void>)>, void, true>);
  CHECK_FALSE(kTakesResult<UniqueFunction<void()>, void, true>);
}

}  // namespace continuation_test
