#include "batchrpc/future/promise.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

using namespace batchrpc;

namespace promise_test {

struct ThrowsWhenMoved {
  ThrowsWhenMoved() = default;
  ThrowsWhenMoved(ThrowsWhenMoved&&) { throw std::runtime_error("moved"); }
};

TEST_CASE("A promise completes its future with a value made of the argument") {
  Promise<std::string> promise;
  const auto future = promise.get_future();
  CHECK(promise.pending());
  promise.set_value("xxx");
  CHECK_FALSE(promise.pending());
  CHECK(future.get() == "xxx");
}

TEST_CASE("A promise may be completed before its future is asked for") {
  Promise<int> promise;
  promise.set_value(1);
  CHECK_FALSE(promise.pending());
  const auto future = promise.get_future();
  CHECK(future.ready());
  CHECK(future.get() == 1);
  CHECK_THROWS_AS(promise.get_future(), InvalidArgument);
}

TEST_CASE("A promise is completed by an error of any type, or a result") {
  Promise<int> pointer, exception, null, result;
  auto futures = std::make_tuple(pointer.get_future(), exception.get_future(), null.get_future(),
                                 result.get_future());
  pointer.set_error(std::make_exception_ptr(42));
  exception.set_error(PeerLost("gone"));
  null.set_error(std::exception_ptr());
  result.set_result(7);
  CHECK_THROWS_AS(std::get<0>(futures).get(), int);
  CHECK_THROWS_AS(std::get<1>(futures).get(), PeerLost);
  CHECK_THROWS_AS(std::get<2>(futures).get(), InvalidArgument);
  CHECK(std::get<3>(futures).get() == 7);
}

TEST_CASE("A promise that is destroyed without a value breaks its future") {
  std::optional<Promise<int>> promise(std::in_place);
  const auto future = promise->get_future();
  ErrorCode seen{};
  future.then([&](Result<int> r) { seen = r.code(); });
  promise.reset();
  CHECK(seen == ErrorCode::broken_promise);
  CHECK_THROWS_AS(future.get(), BrokenPromise);
}

TEST_CASE("A promise that is assigned to breaks the future that it had") {
  Promise<int> promise;
  const auto first = promise.get_future();
  promise = Promise<int>();
  CHECK_THROWS_AS(first.get(), BrokenPromise);
  const auto second = promise.get_future();
  promise.set_value(2);
  CHECK(second.get() == 2);
}

TEST_CASE("A promise that was moved takes its future along") {
  Promise<int> from;
  const auto future = from.get_future();
  Promise<int> to = std::move(from);
  CHECK_FALSE(from.pending());
  CHECK_THROWS_AS(from.set_value(1), InvalidArgument);
  CHECK_THROWS_AS(from.get_future(), InvalidArgument);
  to.set_value(2);
  CHECK(future.get() == 2);
}

TEST_CASE("Completing twice throws and leaves the first result") {
  Promise<int> promise;
  const auto future = promise.get_future();
  promise.set_value(1);
  CHECK_THROWS_AS(promise.set_value(2), InvalidArgument);
  CHECK_THROWS_AS(promise.set_error(TimedOut("late")), InvalidArgument);
  CHECK(future.get() == 1);

  Promise<void> early;
  early.set_value();
  CHECK_THROWS_AS(early.set_value(), InvalidArgument);
  CHECK_NOTHROW(early.get_future().get());
}

TEST_CASE("A value that throws while it is moved in leaves the promise pending") {
  Promise<ThrowsWhenMoved> promise;
  const auto future = promise.get_future();
  CHECK_THROWS_AS(promise.set_value({}), std::runtime_error);
  CHECK(promise.pending());
  CHECK_FALSE(future.ready());
  promise.set_error(TimedOut("late"));
  CHECK_THROWS_AS(future.get(), TimedOut);
}

TEST_CASE("Promises and futures may be dropped in any state and order") {
  { const Promise<int> alone; }
  {
    Promise<int> promise;
    promise.set_value(1);
  }
  {
    Promise<std::unique_ptr<int>> promise;
    { const auto dropped = promise.get_future(); }
    promise.set_value(std::make_unique<int>(1));
  }
  {
    Promise<int> promise;
    int seen = 0;
    promise.get_future().then([&](int v) { seen = v; });  // both futures dropped
    promise.set_value(1);
    CHECK(seen == 1);
  }
}

TEST_CASE("A callback may destroy the promise that is completing it") {
  auto promise = std::make_unique<Promise<int>>();
  int seen = 0;
  promise->get_future().then([&](int v) {
    promise.reset();
    seen = v;
  });
  promise->set_value(3);
  CHECK(seen == 3);
  CHECK(promise == nullptr);
}

}  // namespace promise_test
