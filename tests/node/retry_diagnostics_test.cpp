#include <catch2/catch.hpp>
#include <string>
#include <utility>

#include "batchrpc/batchrpc.hpp"
#include "node/diagnostics_world.hpp"
#include "node/retry_pair.hpp"

// The diagnostics of calls that were tried again: which attempt they are of, and why none follows.

namespace batchrpc {
namespace retry_diagnostics_test {

using namespace std::chrono_literals;
using Catch::Contains;
using test::error;
using test::Failure;
using Pair = test::RetryPair;

TEST_CASE(
    "the diagnostics of a call that was tried again is the last attempt's, and says which it was") {
  Pair pair;
  pair.failures.assign(3, error<NotSent>("broken"));
  pair.b.expose("twice", [](int x) { return 2 * x; });
  CHECK(pair.a.call<int(int)>("b", "twice", 1).get() == 2);
  const TimePoint called = pair.world.loop->now();
  const Failure failed(pair.call({.timeout = 10s, .retry = {.attempts = 3, .backoff = 1s}}));
  REQUIRE(failed.code() == ErrorCode::not_sent);
  REQUIRE(pair.attempts.size() == 3);
  CHECK(failed.diagnostics.function == "f");
  CHECK(failed.diagnostics.peer == "b");
  CHECK(failed.diagnostics.attempt == 3);
  CHECK(failed.diagnostics.attempts == 3);
  CHECK(failed.diagnostics.first_called_at == called);
  CHECK(failed.diagnostics.called_at == pair.attempts.back());
  const auto since =
      std::chrono::duration_cast<std::chrono::milliseconds>(pair.attempts.back() - called).count();
  CHECK(since > 2400);
  CHECK(since < 3600);
  CHECK_THAT(failed.text,
             Contains("     0.000 s  called, and sent at once; its timeout is ") &&
                 Contains("; attempt 3 of 3, " + std::to_string(since / 1000) + "." +
                          std::to_string(1000 + since % 1000).substr(1) + " s after the first\n") &&
                 Contains("that was attempt 3 of 3"));
}

TEST_CASE("a call whose first attempt is its last says that others were to follow") {
  Pair pair;
  pair.failures = {error<PeerLost>("gone")};
  const TimePoint called = pair.world.loop->now();
  const Failure failed(pair.call({.retry = {.attempts = 3}}));
  REQUIRE(failed.code() == ErrorCode::peer_lost);
  CHECK(failed.diagnostics.attempt == 1);
  CHECK(failed.diagnostics.attempts == 3);
  CHECK(failed.diagnostics.first_called_at == called);
  CHECK_THAT(failed.text, Contains("; attempt 1 of 3\n"));
}

TEST_CASE("a call whose earlier attempt may have run is not explained by what became of the last") {
  Pair pair;
  pair.failures = {error<PeerLost>("gone"), error<Overloaded>("full", 1ms)};
  const Failure failed(pair.call({.retry = {.attempts = 2, .idempotent = true}}));
  CHECK(test::may_have_run(failed.error));
  CHECK(failed.diagnostics.guarantee == Guarantee::at_most_once);
}

TEST_CASE("a call that was cancelled between two attempts has the diagnostics of the one before") {
  Pair pair;
  pair.failures.assign(3, error<NotSent>("broken"));
  const TimePoint called = pair.world.loop->now();
  auto call = pair.call({.retry = {.attempts = 3, .backoff = 1s}});
  pair.world.run_for(500ms);
  REQUIRE(pair.attempts.size() == 1);
  REQUIRE(call.cancel());
  const Failure failed(std::move(call));
  REQUIRE(failed.code() == ErrorCode::cancelled);
  CHECK(failed.diagnostics.guarantee == Guarantee::cancellation);
  CHECK(failed.diagnostics.called_at == called);
  CHECK(failed.took() == 500ms);
  CHECK_THAT(failed.text, Contains("the call of 'f' on b, which never ran") &&
                              Contains("; attempt 1 of 3\n") &&
                              Contains("0.500 s  ended: 'f' on b was cancelled between two"));
}

TEST_CASE("a call that waits to be tried again when its node ends is explained by promise 8") {
  Pair pair;
  pair.failures.assign(3, error<Overloaded>("full", 10s));
  auto call = pair.call({.retry = {.attempts = 3}});
  pair.world.run_for(1s);
  pair.a.shutdown(0s);
  const Failure failed(std::move(call));
  REQUIRE(failed.code() == ErrorCode::shut_down);
  CHECK(failed.diagnostics.guarantee == Guarantee::shutdown);
  CHECK(failed.diagnostics.attempt == 1);
  CHECK(failed.took() >= 1s);
}

TEST_CASE("who has used up the retry budget is told what it is, and what waits for a peer") {
  Pair pair;
  pair.failures = {error<NotSent>("broken")};
  pair.always_fails = true;
  const auto fail = [&] {
    return Failure(pair.call({.timeout = 1h, .retry = {.attempts = 12, .backoff = 1ms}}));
  };
  CHECK(fail().diagnostics.attempt == 11);  // ten had been saved up
  const Failure failed = fail();
  CHECK(failed.diagnostics.attempt == 1);
  CHECK_THAT(failed.text,
             Contains("the node's retry budget (a tenth of its calls that ask for retries, plus "
                      "ten saved up) is used up; use wait_for_peer() to wait for a lost peer"));
}

TEST_CASE("who has used up the retry budget at a peer that is overloaded is told to call less") {
  Pair pair;
  pair.failures = {error<Overloaded>("full")};
  pair.always_fails = true;
  const CallOptions options{.timeout = 1h, .retry = {.attempts = 12, .backoff = 1ms}};
  CHECK(Failure(pair.call(options)).diagnostics.attempt == 11);
  CHECK_THAT(Failure(pair.call(options)).text,
             Contains("is used up; call less often, or call again after retry_after()\n"));
}

}  // namespace retry_diagnostics_test
}  // namespace batchrpc
