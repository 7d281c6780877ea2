#include "batchrpc/future/coroutine.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"
#include "batchrpc/future/when_all.hpp"
#include "batchrpc/future/when_any.hpp"

using namespace batchrpc;

namespace {

Future<int> sum(Future<int> a, Future<int> b) {
  co_return co_await std::move(a) + co_await std::move(b);
}

Future<std::string> twice(const Future<std::string>& text) {
  std::string result = co_await text;
  result += co_await text;
  co_return result;
}

Future<int> rescue(Future<int> future) {
  try {
    co_return co_await std::move(future);
  } catch (int thrown) {
    co_return -thrown;
  }
}

Future<void> store(Future<std::unique_ptr<int>> pointer, int& out) {
  const std::unique_ptr<int> value = co_await std::move(pointer);
  out = *value;
}

/// Records when it is destroyed.
class Note {
 public:
  Note(std::string* log, char name) : log_(log), name_(name) {}
  Note(Note&& other) noexcept : log_(std::exchange(other.log_, nullptr)), name_(other.name_) {}
  Note& operator=(Note&&) = delete;
  ~Note() {
    if (log_ != nullptr) *log_ += name_;
  }

 private:
  std::string* log_;
  char name_;
};

Future<void> hold(Note /*parameter*/, std::string* log, Future<void> gate) {
  const Note local(log, 'l');
  co_await std::move(gate);
}

}  // namespace

TEST_CASE("A coroutine runs at once up to the first future that is not ready") {
  Promise<int> a, b;
  auto total = sum(a.get_future(), b.get_future());
  b.set_value(2);
  CHECK_FALSE(total.ready());
  a.set_value(1);
  CHECK(total.get() == 3);
  CHECK(sum(make_ready_future(4), make_ready_future(5)).get() == 9);
}

TEST_CASE("An lvalue future may be awaited again and again") {
  Promise<std::string> promise;
  const auto text = promise.get_future();
  auto first = twice(text);
  auto second = twice(text);
  std::string seen;
  text.then([&](const std::string& value) { seen = value; });
  promise.set_value("ab");
  CHECK(first.get() == "abab");
  CHECK(second.get() == "abab");
  CHECK(text.get() == "ab");
  CHECK(seen == "ab");
}

TEST_CASE("A coroutine catches what a future failed with, of any type") {
  Promise<int> promise;
  auto rescued = rescue(promise.get_future());
  promise.set_error(std::make_exception_ptr(42));
  CHECK(rescued.get() == -42);
  CHECK(rescue(make_ready_future(1)).get() == 1);
}

TEST_CASE("What a coroutine does not catch is its future's error") {
  Promise<int> promise;
  auto total = sum(promise.get_future(), make_ready_future(1));
  { const auto dropped = std::move(promise); }
  CHECK_THROWS_AS(total.get(), BrokenPromise);
  const auto throws = []() -> Future<void> {
    throw 42;
    co_return;
  };
  CHECK_THROWS_AS(throws().get(), int);
}

TEST_CASE("Coroutines move values that cannot be copied") {
  Promise<std::unique_ptr<int>> promise;
  int out = 0;
  auto done = store(promise.get_future(), out);
  promise.set_value(std::make_unique<int>(7));
  done.get();
  CHECK(out == 7);
}

TEST_CASE("A coroutine may return a Result") {
  const auto fails = [](bool fail) -> Future<int> {
    Result<int> result = 1;
    if (fail) result = std::make_exception_ptr(TimedOut("late"));
    co_return result;
  };
  CHECK(fails(false).get() == 1);
  CHECK_THROWS_AS(fails(true).get(), TimedOut);
}

TEST_CASE("What a callback captured lives until the coroutine that it is has ended") {
  Promise<int> promise;
  Promise<void> open;
  const auto gate = std::make_shared<Future<void>>(open.get_future());
  const auto captured = std::make_shared<int>(7);
  const auto future = promise.get_future();
  auto sum = future.then([gate, captured](int n) -> Future<int> {
    co_await *gate;
    co_return n + *captured;
  });
  int seen = 0;
  future.then([gate, captured, &seen](int n) -> Future<void> {  // its future is dropped
    co_await *gate;
    seen = n + *captured;
  });
  auto at_last = future.finally([gate, captured]() -> Future<void> {
    co_await *gate;
    *captured += 1;
  });
  promise.set_value(1);
  CHECK(captured.use_count() == 4);
  open.set_value();
  CHECK(sum.get() == 8);
  CHECK(seen == 8);
  CHECK(at_last.get() == 1);
  CHECK(*captured == 8);
  CHECK(captured.use_count() == 1);

  Promise<int> fails;
  Promise<void> later;
  auto second = fails.get_future().on_error(
      [gate = later.get_future(), captured](std::exception_ptr) -> Future<int> {
        co_await gate;
        co_return *captured;
      });
  fails.set_error(TimedOut("late"));
  CHECK(captured.use_count() == 2);
  later.set_value();
  CHECK(second.get() == 8);
  CHECK(captured.use_count() == 1);
}

TEST_CASE("A coroutine's future completes when its variables and parameters are gone") {
  std::string log;
  Promise<void> gate;
  auto done = hold(Note(&log, 'p'), &log, gate.get_future());
  done.then([&] { log += '.'; });
  CHECK(log.empty());
  gate.set_value();
  CHECK(log == "lp.");
}

TEST_CASE("Dropping a coroutine's future does not stop it") {
  Promise<std::unique_ptr<int>> promise;
  int out = 0;
  { const auto dropped = store(promise.get_future(), out); }
  promise.set_value(std::make_unique<int>(7));
  CHECK(out == 7);
}

TEST_CASE("Awaiting an empty future throws InvalidArgument") {
  CHECK_THROWS_AS(sum(Future<int>(), make_ready_future(1)).get(), InvalidArgument);
}

TEST_CASE("A coroutine awaits a hundred thousand futures without recursion") {
  const auto many = [](std::vector<Future<int>>& futures) -> Future<int> {
    int total = 0;
    for (auto& future : futures)
      total += co_await future;
    co_return total;
  };
  constexpr std::size_t kMany = 100'000;
  std::vector<Future<int>> ready;
  for (std::size_t i = 0; i < kMany; ++i)
    ready.push_back(make_ready_future(1));
  CHECK(many(ready).get() == kMany);

  std::vector<Promise<int>> promises(kMany);
  std::vector<Future<int>> pending;
  for (auto& promise : promises)
    pending.push_back(promise.get_future());
  auto total = many(pending);
  for (auto& promise : promises)
    promise.set_value(1);
  CHECK(total.get() == kMany);
}

TEST_CASE("Coroutines that wait for each other in a long row complete without recursion") {
  const auto next = [](Future<int> before) -> Future<int> {
    co_return 1 + co_await std::move(before);
  };
  Promise<int> first;
  auto last = first.get_future();
  for (int i = 0; i < 100'000; ++i)
    last = next(std::move(last));
  first.set_value(0);
  CHECK(last.get() == 100'000);
}

// g++ 12 miscompiles some forms of co_await expressions (see coroutine.hpp). These are the forms
// that the library's types must allow, each with a real suspension; the sanitizers watch.
namespace {

struct Aggregate {
  std::string name;
  std::vector<int> numbers;
};

class Probe {
 public:
  /// Stands for a call: takes its arguments, completes later.
  template <class... Arguments>
  Future<std::size_t> call(Arguments... arguments) {
    promises_.emplace_back();
    auto future = promises_.back().get_future();
    return std::move(future).then(
        [held = std::make_tuple(std::move(arguments)...)](std::size_t size) { return size; });
  }
  void complete_all() {
    for (std::size_t i = 0; i < promises_.size(); ++i) {
      auto promise = std::move(promises_[i]);
      promise.set_value(i + 1);
    }
  }

 private:
  std::vector<Promise<std::size_t>> promises_;
};

const std::string kLong = "a text that is too long to be kept inside the string";

Future<std::size_t> safe_forms(Probe& probe) {
  std::size_t total = 0;
  // Arguments with constructors, as temporaries.
  total += co_await probe.call(std::string(kLong), std::vector<int>(100), 1);
  total += co_await probe.call(std::pair(kLong, 1), std::tuple(kLong, kLong));
  total += co_await probe.call(std::make_unique<std::string>(kLong), std::optional(kLong));
  total += co_await probe.call(Result<std::string>(kLong), make_ready_future(kLong));
  // Aggregates and lambdas, named first.
  Aggregate aggregate{kLong, {1, 2, 3}};
  total += co_await probe.call(aggregate);
  total += co_await probe.call(std::move(aggregate));
  auto lambda = [text = kLong] { return text.size(); };
  total += co_await probe.call(lambda);
  Task task([text = kLong] { static_cast<void>(text.size()); });
  total += co_await probe.call(std::move(task));
  std::array<std::string, 2> array{kLong, kLong};
  total += co_await probe.call(array);
  // Through a variable.
  auto future = probe.call(kLong);
  total += co_await std::move(future);
  // Results of any shape.
  if (const auto size = co_await probe.call(kLong); size > 0) total += size;
  const auto when = co_await when_all(probe.call(kLong), probe.call(1));
  total += std::get<0>(when);
  std::vector<Future<std::size_t>> futures;
  futures.push_back(probe.call(kLong));
  futures.push_back(probe.call(kLong));
  const auto first = co_await when_any(std::move(futures));
  total += first.value;
  // In a chain, a loop, a try block, a conditional expression's branches.
  total += co_await probe.call(kLong).then([](std::size_t size) { return size; });
  for (int i = 0; i < 3; ++i)
    total += co_await probe.call(kLong);
  try {
    co_await probe.call(kLong).then([](std::size_t) { throw TimedOut(kLong); });
  } catch (const TimedOut& error) {
    total += error.what() == kLong ? 1 : 0;
  }
  co_return total;
}

}  // namespace

TEST_CASE("The forms of co_await that the documentation calls safe are, with real suspensions") {
  std::size_t expected = 0;
  for (int round = 0; round < 2; ++round) {
    Probe probe;
    auto total = safe_forms(probe);
    CHECK_FALSE(total.ready());
    probe.complete_all();
    REQUIRE(total.ready());
    if (round == 0) expected = total.get();
    CHECK(total.get() == expected);
  }
  // 11 calls that count 1 to 11, when_all's (12), when_any's (14), 1 + 3 calls (16 to 19), and the
  // rescued one.
  CHECK(expected == 66 + 12 + 14 + 16 + 17 + 18 + 19 + 1);
}

namespace {

struct Convertible {
  operator std::align_val_t() const { return std::align_val_t{4096}; }  // NOLINT: implicit
};

Future<int> takes_one(Convertible /*value*/) { co_return 1; }
Future<int> takes_two(Convertible /*value*/, int number) { co_return number; }

}  // namespace

TEST_CASE("what a coroutine is given does not choose how its frame is allocated") {
  for (int i = 0; i < 200; ++i) {
    CHECK(takes_one({}).get() == 1);
    CHECK(takes_two({}, i).get() == i);
  }
}
