#include <algorithm>
#include <catch2/catch.hpp>

#include "node/calling_pair.hpp"

namespace batchrpc {
namespace timeouts_test {

using namespace std::chrono_literals;
using test::may_have_run;
using test::outcome;

/// Of which b exposes "never" as well, which does not answer.
struct Pair : test::CallingPair {
  std::vector<Promise<int>> never;
  Pair() {
    b.expose("never", [this] {
      never.emplace_back();
      return never.back().get_future();
    });
  }
};

TEST_CASE("a call times out at its deadline exactly, and may have run") {
  Pair pair;
  const TimePoint start = pair.world.loop->now();
  auto future = pair.a.peer("b").with({.timeout = 250ms}).call<int()>("never");
  const auto result = outcome(std::move(future));
  CHECK(pair.world.loop->now() - start == 250ms);
  REQUIRE_FALSE(result);
  CHECK(result.code() == ErrorCode::timed_out);
  CHECK(may_have_run(result.error()));
  CHECK_THAT(result.message(), Catch::Contains("'never' on b did not answer in time") &&
                                   Catch::Contains("it may have run"));
  pair.never[0].set_value(1);  // too late: the answer is dropped
  pair.next_call_works();
}

TEST_CASE("the node's default time-out holds for calls that name none, and 60 s is the default") {
  Pair pair;
  NodeOptions options = pair.world.joining("hurried");
  options.call_timeout = 3ms;
  const Node hurried(options);
  const TimePoint start = pair.world.loop->now();
  CHECK(outcome(hurried.call<int()>("b", "never")).code() == ErrorCode::timed_out);
  CHECK(pair.world.loop->now() - start == 3ms);
  const TimePoint second = pair.world.loop->now();
  CHECK(outcome(pair.a.call<int()>("b", "never")).code() == ErrorCode::timed_out);
  CHECK(pair.world.loop->now() - second == 60s);
}

TEST_CASE("each of many calls times out at its own time, whatever their order") {
  Pair pair;
  const TimePoint start = pair.world.loop->now();
  std::vector<std::pair<Duration, Duration>> ended;
  for (const int milliseconds : {50, 10, 70, 30, 10, 90, 20}) {
    const Duration timeout = std::chrono::milliseconds(milliseconds);
    pair.a.peer("b")
        .with({.timeout = timeout})
        .call<int()>("never")
        .then([&ended, &pair, start, timeout](const Result<int>& result) {
          CHECK(result.code() == ErrorCode::timed_out);
          ended.emplace_back(timeout, pair.world.loop->now() - start);
        });
  }
  pair.world.run_for(1s);
  REQUIRE(ended.size() == 7);
  for (const auto& [timeout, after] : ended)
    CHECK(after == timeout);
  CHECK(std::is_sorted(ended.begin(), ended.end()));
}

TEST_CASE("a call to a peer that cannot be reached times out and surely did not run") {
  Pair pair;
  const Node c = pair.world.join("c");
  pair.world.network->partition("b", "c");
  const auto result = outcome(c.peer("b").with({.timeout = 1s}).call<&failures::area>(1, 2));
  CHECK(result.code() == ErrorCode::timed_out);
  CHECK_FALSE(may_have_run(result.error()));
  CHECK_THAT(result.message(), Catch::Contains("never ran"));
  // Written into a connection, it may have run.
  pair.world.network->partition("a", "b");
  const auto sent = outcome(pair.a.peer("b").with({.timeout = 1s}).call<&failures::area>(1, 2));
  CHECK(sent.code() == ErrorCode::timed_out);
  CHECK(may_have_run(sent.error()));
}

TEST_CASE("a call that waits for ever outlives the default time-out") {
  Pair pair;
  Promise<int> promise;
  pair.b.expose("slow", [future = std::make_shared<Future<int>>(promise.get_future())] {
    return std::move(*future);
  });
  auto answer = pair.a.peer("b").with({.timeout = Duration::max()}).call<int()>("slow");
  pair.world.run_for(10h);
  CHECK_FALSE(answer.ready());
  promise.set_value(3);
  CHECK(answer.get() == 3);
}

TEST_CASE("a very long time-out does not overflow") {
  Pair pair;
  for (const Duration timeout :
       {Duration::max() - 1ns, Duration::max() / 2, Duration(24h * 365 * 200)}) {
    CHECK(pair.a.peer("b").with({.timeout = timeout}).call<&failures::area>(2, 3).get() == 6);
  }
}

TEST_CASE("a negative time-out has passed") {
  Pair pair;
  CHECK(outcome(pair.a.peer("b").with({.timeout = -1s}).call<&failures::area>(2, 3)).code() ==
        ErrorCode::timed_out);
  int ran = 0;
  pair.b.expose("count", [&ran] { ++ran; });
  const auto late = outcome(pair.a.peer("b").with({.timeout = -1ms}).call<void()>("count"));
  CHECK(late.code() == ErrorCode::timed_out);
  CHECK_FALSE(may_have_run(late.error()));
  pair.next_call_works();
  CHECK(ran == 0);
}

}  // namespace timeouts_test
}  // namespace batchrpc
