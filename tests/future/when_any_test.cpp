#include "batchrpc/future/when_any.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"

using namespace batchrpc;

TEST_CASE("when_any gives the first value and its index, the others go on") {
  std::vector<Promise<int>> promises(3);
  std::vector<Future<int>> futures;
  for (auto& promise : promises)
    futures.push_back(promise.get_future());
  auto any = when_any(futures);
  CHECK_FALSE(any.ready());
  promises[1].set_value(20);
  CHECK(any.get().index == 1);
  CHECK(any.get().value == 20);
  promises[0].set_value(10);
  promises[2].set_error(TimedOut("late"));
  CHECK(any.get().value == 20);
  CHECK(futures[0].get() == 10);
}

TEST_CASE("when_any fails if the first to be ready has failed") {
  std::vector<Promise<int>> promises(2);
  std::vector<Future<int>> futures;
  for (auto& promise : promises)
    futures.push_back(promise.get_future());
  auto any = when_any(std::move(futures));
  promises[1].set_error(TimedOut("late"));
  promises[0].set_value(1);
  CHECK_THROWS_AS(any.get(), TimedOut);
}

TEST_CASE("when_any takes the first in the range of those that are ready") {
  std::vector<Future<std::unique_ptr<int>>> futures;
  Promise<std::unique_ptr<int>> pending;
  futures.push_back(pending.get_future());
  futures.push_back(make_ready_future(std::make_unique<int>(1)));
  futures.push_back(make_ready_future(std::make_unique<int>(2)));
  const auto first = when_any(std::move(futures)).result().value().index;
  CHECK(first == 1);
}

TEST_CASE("when_any of futures without values gives the index") {
  std::vector<Future<void>> futures;
  futures.push_back(make_ready_future());
  CHECK(when_any(std::move(futures)).get().index == 0);
}

TEST_CASE("when_any takes futures one by one as well, lvalues and rvalues") {
  Promise<int> first, second;
  const Future<int> kept = first.get_future();
  auto any = when_any(kept, second.get_future(), Promise<int>().get_future());
  second.set_value(20);
  CHECK(any.ready());
  first.set_value(10);
  CHECK(kept.get() == 10);
  const auto broken = std::move(any).result();
  CHECK(broken.code() == ErrorCode::broken_promise);

  Promise<std::unique_ptr<int>> pending;
  auto moved = when_any(pending.get_future(), make_ready_future(std::make_unique<int>(2)));
  CHECK(moved.get().index == 1);
  CHECK(*moved.get().value == 2);
  CHECK(when_any(make_ready_future()).get().index == 0);
  Future<int> empty;
  CHECK_THROWS_AS(when_any(kept, std::move(empty)), InvalidArgument);
}

TEST_CASE("when_any of no futures fails") {
  CHECK_THROWS_AS(when_any(std::vector<Future<int>>()).get(), InvalidArgument);
}

TEST_CASE("when_any refuses an empty future") {
  std::vector<Future<int>> futures(1);
  CHECK_THROWS_AS(when_any(std::move(futures)), InvalidArgument);
}

TEST_CASE("A dropped when_any is gone when its last source is") {
  const auto value = std::make_shared<int>();
  std::vector<Promise<std::shared_ptr<int>>> promises(2);
  std::vector<Future<std::shared_ptr<int>>> futures;
  for (auto& promise : promises)
    futures.push_back(promise.get_future());
  { const auto dropped = when_any(std::move(futures)); }
  promises[0].set_value(value);
  promises[1].set_value(value);
  CHECK(value.use_count() == 1);
}
