#include "batchrpc/future/future.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "batchrpc/future/promise.hpp"

using namespace batchrpc;

namespace future_test {

int twice(int value) { return 2 * value; }

struct Overloaded_ {
  int operator()(int value) { return value; }
  int operator()(const std::string& text) { return static_cast<int>(text.size()); }
};

struct NotAnException {
  int detail;
};

/// The int that `future` failed with.
template <class T>
int thrown_int(const Future<T>& future) {
  try {
    future.get();
  } catch (int thrown) {
    return thrown;
  }
  return -1;
}

std::exception_ptr error(int thrown) { return std::make_exception_ptr(thrown); }

TEST_CASE("A callback gets the value, and what it returns is the next future's value") {
  Promise<int> promise;
  auto text = promise.get_future().then([](int v) { return std::to_string(v); });
  CHECK_FALSE(text.ready());
  promise.set_value(5);
  CHECK(text.ready());
  CHECK(text.get() == "5");
}

TEST_CASE("A callback attached to a ready future runs before then() returns") {
  int seen = 0;
  make_ready_future(7).then([&](int v) { seen = v; });
  CHECK(seen == 7);
}

TEST_CASE("Callbacks may be of any callable kind") {
  const auto ready = make_ready_future(3);
  CHECK(ready.then(twice).get() == 6);
  CHECK(ready.then(&twice).get() == 6);
  CHECK(ready.then(Overloaded_()).get() == 3);
  CHECK(ready.then([](auto v) { return v + 1; }).get() == 4);
  CHECK(ready.then([](const int& v) noexcept { return v; }).get() == 3);
  CHECK(ready.then([n = 1](int v) mutable { return v + n++; }).get() == 4);
  CHECK(ready.then([p = std::make_unique<int>(4)](int v) { return v + *p; }).get() == 7);
  CHECK(make_ready_future(3).then([](int&& v) { return v; }).get() == 3);
  CHECK(ready.then([](double v) { return v / 2; }).get() == 1.5);
  std::vector<int> big(100);
  const auto large = [array = std::array<int, 64>{1}](int v) { return array[0] + v; };
  CHECK(ready.then(large).get() == 4);
}

TEST_CASE("Errors pass by callbacks that take the value") {
  Promise<int> promise;
  bool called = false;
  auto last = promise.get_future().then([&](int) { called = true; }).then([&] { called = true; });
  promise.set_error(error(42));
  CHECK(thrown_int(last) == 42);
  CHECK_FALSE(called);
}

TEST_CASE("A callback that takes a Result sees values and errors") {
  const auto say = [](Result<int> r) {
    return r ? *r : -thrown_int(make_failed_future<int>(r.error()));
  };
  CHECK(make_ready_future(1).then(say).get() == 1);
  CHECK(make_failed_future<int>(error(9)).then(say).get() == -9);
  CHECK(make_failed_future<void>(error(9)).then([](Result<void> r) { return !r; }).get());
  CHECK(make_ready_future().then([](const Result<void>& r) { return r.has_value(); }).get());
  const auto lvalue = make_ready_future(std::make_unique<int>(5));
  CHECK(lvalue.then([](const Result<std::unique_ptr<int>>& r) { return **r; }).get() == 5);
}

TEST_CASE("A future or Result that a callback returns is flattened") {
  Promise<int> inner;
  Future<int> outer = make_ready_future().then([&] { return inner.get_future(); });
  CHECK_FALSE(outer.ready());
  inner.set_value(3);
  CHECK(outer.get() == 3);

  Future<int> ready = make_ready_future(1).then([](int v) { return make_ready_future(v + 1); });
  CHECK(ready.get() == 2);
  Future<void> failed =
      make_ready_future(1).then([](int) { return make_failed_future<void>(error(4)); });
  CHECK(thrown_int(failed) == 4);
  Future<int> result = make_failed_future<int>(error(6)).then([](Result<int> r) { return r; });
  CHECK(thrown_int(result) == 6);
}

TEST_CASE("A callback that returns an empty future fails its future") {
  auto failed = make_ready_future().then([] { return Future<int>(); });
  CHECK_THROWS_AS(failed.get(), InvalidArgument);
}

TEST_CASE("What a callback throws, of any type, is its future's error") {
  const auto ready = make_ready_future();
  CHECK(thrown_int(ready.then([]() -> int { throw 42; })) == 42);
  CHECK_THROWS_AS(ready.then([] { throw NotAnException{1}; }).get(), NotAnException);
  CHECK_THROWS_AS(ready.then([] { throw "text"; }).get(), const char*);
  CHECK_THROWS_AS(ready.then([] { throw TimedOut("late"); }).get(), TimedOut);
  CHECK_THROWS_AS(ready.then([]() -> Future<int> { throw NotAnException{1}; }).get(),
                  NotAnException);
  CHECK_THROWS_AS(ready.then([](Result<void>) { throw NotAnException{1}; }).get(), NotAnException);
  CHECK_NOTHROW(ready.then([] { throw 42; }));  // dropped with its future
  CHECK_NOTHROW(ready.get());
}

TEST_CASE("An lvalue future serves any number of callbacks and gets, in order") {
  Promise<std::string> promise;
  auto future = promise.get_future();
  std::string order;
  for (const char name : {'a', 'b', 'c'}) {
    future.then([&order, name](const std::string& value) { order += name + value; });
  }
  promise.set_value("1");
  CHECK(order == "a1b1c1");
  future.then([&](const std::string& value) { order += 'd' + value; });
  CHECK(order == "a1b1c1d1");
  CHECK(future.get() == "1");
  CHECK(&future.get() == &future.get());
  CHECK(std::move(future).get() == "1");
  CHECK_FALSE(future.valid());
}

TEST_CASE("Move-only values are looked at through an lvalue and moved through an rvalue") {
  Promise<std::unique_ptr<int>> promise;
  auto future = promise.get_future();
  int seen = 0;
  future.then([&](const std::unique_ptr<int>& value) { seen = *value; });
  promise.set_value(std::make_unique<int>(3));
  CHECK(seen == 3);
  CHECK(*future.get() == 3);
  auto next = std::move(future).then([](std::unique_ptr<int> value) { return value; });
  CHECK_FALSE(future.valid());
  const std::unique_ptr<int> value = std::move(next).get();
  CHECK(*value == 3);
}

TEST_CASE("A callback on an lvalue sees the value before a later one takes it") {
  Promise<std::unique_ptr<int>> promise;
  auto future = promise.get_future();
  std::vector<int> seen;
  future.then([&](const std::unique_ptr<int>& value) { seen.push_back(*value); });
  auto taken = std::move(future).then([&](std::unique_ptr<int> value) {
    seen.push_back(-*value);
    return value;
  });
  promise.set_value(std::make_unique<int>(8));
  CHECK(seen == std::vector<int>{8, -8});
  CHECK(*std::move(taken).get() == 8);
}

TEST_CASE("on_error gives a value in an error's place and lets values pass") {
  CHECK(make_ready_future(1).on_error([](std::exception_ptr) { return 2; }).get() == 1);
  CHECK(make_failed_future<int>(error(5)).on_error([](std::exception_ptr) { return 2; }).get() ==
        2);
  bool called = false;
  make_failed_future<void>(error(5))
      .on_error([&](const std::exception_ptr&) { called = true; })
      .get();
  CHECK(called);
  Promise<int> later;
  auto future = make_failed_future<int>(error(5)).on_error(
      [&](std::exception_ptr) { return later.get_future(); });
  CHECK_FALSE(future.ready());
  later.set_value(6);
  CHECK(future.get() == 6);
  CHECK(thrown_int(make_failed_future<int>(error(5)).on_error(
            [](std::exception_ptr) -> int { throw 7; })) == 7);
  const auto lvalue = make_failed_future<int>(error(5));
  CHECK(lvalue.on_error([](std::exception_ptr) { return 1; }).get() == 1);
  CHECK(thrown_int(lvalue) == 5);
}

TEST_CASE("on_error of a type catches that type and its derived ones only") {
  const auto late = make_failed_future<int>(TimedOut("late"));
  CHECK(late.on_error<TimedOut>([](const TimedOut&) { return 1; }).get() == 1);
  CHECK(late.on_error<Error>([](const Error& e) { return static_cast<int>(e.code()); }).get() == 2);
  CHECK_THROWS_AS(late.on_error<PeerLost>([](const PeerLost&) { return 1; }).get(), TimedOut);
  CHECK_THROWS_AS(
      late.on_error<TimedOut>([](const TimedOut&) -> int { throw PeerLost("gone"); }).get(),
      PeerLost);
  CHECK(make_ready_future(3).on_error<TimedOut>([](const TimedOut&) { return 1; }).get() == 3);
  Future<int> flattened =
      late.on_error<TimedOut>([](const TimedOut&) { return make_ready_future(4); });
  CHECK(flattened.get() == 4);
}

TEST_CASE("finally sees both ends and changes neither") {
  int calls = 0;
  CHECK(make_ready_future(1).finally([&] { ++calls; }).get() == 1);
  CHECK(thrown_int(make_failed_future<int>(error(5)).finally([&] { ++calls; })) == 5);
  make_ready_future().finally([&] { ++calls; }).get();
  const auto lvalue = make_ready_future(std::string("kept"));
  CHECK(lvalue.finally([&] { ++calls; }).get() == "kept");
  CHECK(lvalue.get() == "kept");
  CHECK(**make_ready_future(std::make_unique<int>(2)).finally([&] { ++calls; }).result() == 2);
  CHECK(calls == 5);
}

TEST_CASE("What finally throws, or the future that it returns, takes the place of a value") {
  CHECK(thrown_int(make_ready_future(1).finally([] { throw 6; })) == 6);
  Promise<void> closing;
  auto closed = make_ready_future(1).finally([&] { return closing.get_future(); });
  CHECK_FALSE(closed.ready());
  closing.set_value();
  CHECK(closed.get() == 1);
  auto failed = make_ready_future(1).finally([] { return make_failed_future<void>(error(3)); });
  CHECK(thrown_int(failed) == 3);
  auto both = make_failed_future<int>(error(1)).finally([] { return make_ready_future(); });
  CHECK(thrown_int(both) == 1);
}

TEST_CASE("result() gives the error without throwing it") {
  CHECK(make_ready_future(1).result().value() == 1);
  CHECK(make_failed_future<int>(TimedOut("late")).result().code() == ErrorCode::timed_out);
  const auto lvalue = make_failed_future<void>(TimedOut("late"));
  CHECK(lvalue.result().message() == "late");
  CHECK(lvalue.result().message() == "late");
}

TEST_CASE("An empty future throws InvalidArgument from everything but valid()") {
  Future<int> future;
  CHECK_FALSE(future.valid());
  CHECK_THROWS_AS(future.ready(), InvalidArgument);
  CHECK_THROWS_AS(future.wait(), InvalidArgument);
  CHECK_THROWS_AS(future.wait_for(std::chrono::seconds(1)), InvalidArgument);
  CHECK_THROWS_AS(future.wait_until(TimePoint()), InvalidArgument);
  CHECK_THROWS_AS(future.get(), InvalidArgument);
  CHECK_THROWS_AS(std::move(future).get(), InvalidArgument);
  CHECK_THROWS_AS(future.then([](int) {}), InvalidArgument);
  CHECK_THROWS_AS(std::move(future).then([](int) {}), InvalidArgument);
  CHECK_THROWS_AS(future.on_error([](std::exception_ptr) { return 1; }), InvalidArgument);
  CHECK_THROWS_AS(future.finally([] {}), InvalidArgument);
}

TEST_CASE("A failed future with a null error fails with InvalidArgument") {
  CHECK_THROWS_AS(make_failed_future<int>(std::exception_ptr()).get(), InvalidArgument);
}

TEST_CASE("What a callback captured is destroyed when it has run or was passed by") {
  const auto captured = std::make_shared<int>();
  Promise<int> promise;
  auto future = promise.get_future();
  auto ran = future.then([captured](int) {});
  auto passed = future.on_error([captured](std::exception_ptr) { return 1; });
  CHECK(captured.use_count() == 3);
  promise.set_value(1);
  CHECK(captured.use_count() == 1);
}

TEST_CASE("Values whose elements cannot be copied can be in a future") {
  std::vector<std::unique_ptr<int>> values;
  values.push_back(std::make_unique<int>(1));
  auto future = make_ready_future(std::move(values));
  CHECK(future.get().size() == 1);
  CHECK(std::move(future).then([](auto v) { return v.size(); }).get() == 1);
}

}  // namespace future_test
