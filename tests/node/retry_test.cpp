#include <catch2/catch.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "batchrpc/call/caller.hpp"
#include "node/node_core.hpp"
#include "node/retried_call.hpp"
#include "node/retries.hpp"
#include "node/retry_pair.hpp"

// Promise 1: what the library does with calls that may be tried again.

namespace batchrpc {
namespace retry_test {

using namespace std::chrono_literals;
using test::error;
using test::fail_with;
using test::may_have_run;
using test::outcome;
using Pair = test::RetryPair;

static_assert(std::is_trivially_copyable_v<CallOptions>);
static_assert(std::is_trivially_destructible_v<CallOptions>);

TEST_CASE("promise 1: retry tries again what surely never ran, and the rest only if idempotent") {
  struct Case {
    std::exception_ptr error;
    std::size_t attempts;  // of three
    std::size_t if_idempotent;
  };
  const std::vector<Case> cases{
      {error<NotSent>("broken"), 3, 3},
      {error<Overloaded>("full"), 3, 3},
      {error<Overloaded>("full", 1ms, true), 1, 3},
      {error<Unknown>("forgotten"), 1, 3},
      {error<PeerLost>("gone"), 1, 3},
      {error<TimedOut>("slow"), 1, 1},
      {error<TimedOut>("slow", false), 1, 1},
      {error<Cancelled>("taken back"), 1, 1},
      {error<Cancelled>("taken back", false), 1, 1},
      {error<NotFound>("no such thing"), 1, 1},
      {error<BadSignature>("other types"), 1, 1},
      {error<BadMessage>("too deep"), 1, 1},
      {error<InvalidArgument>("no"), 1, 1},
      {error<ShutDown>("over"), 3, 3},
      {error<ShutDown>("over", true), 1, 1},
      {error<BrokenPromise>("dropped"), 1, 1},
      {error<JoinFailed>("no"), 1, 1},
      {error<std::runtime_error>("thrown"), 1, 1},
  };
  for (const Case& entry : cases) {
    for (const bool idempotent : {false, true}) {
      Pair pair;
      pair.failures.assign(3, entry.error);
      const auto result = outcome(pair.call({.retry = {.attempts = 3, .idempotent = idempotent}}));
      INFO(describe(entry.error) << ", " << idempotent);
      CHECK(pair.attempts.size() == (idempotent ? entry.if_idempotent : entry.attempts));
      CHECK(result.code() == code_of(entry.error));
      const bool told = result.message().find("that was attempt 3 of 3") != std::string::npos;
      CHECK(told == (pair.attempts.size() == 3));
    }
  }
}

TEST_CASE("promise 1: retry runs a function that threw once only") {
  Pair pair;
  int ran = 0;
  pair.b.expose("throws", [&ran] {
    ++ran;
    throw NotSent("a call of mine");
  });
  const auto result = outcome(
      pair.a.peer("b").with({.retry = {.attempts = 5, .idempotent = true}}).call<void()>("throws"));
  CHECK(result.code() == ErrorCode::remote_error);
  CHECK(ran == 1);
}

TEST_CASE("promise 1: retry gives the caller the value of the attempt that has one") {
  Pair pair;
  pair.failures = {error<NotSent>("1"), error<PeerLost>("2"), error<Overloaded>("3")};
  CHECK(pair.call({.retry = {.attempts = 10, .idempotent = true}}).get() == 4);
  CHECK(pair.attempts.size() == 4);
  CHECK(pair.call({}).get() == 5);
}

TEST_CASE("promise 1: retry pauses twice as long each time, and not by the clock") {
  std::vector<std::vector<Duration>> runs;
  for (int run = 0; run < 2; ++run) {
    Pair pair;
    pair.failures.assign(4, error<NotSent>("broken"));
    CHECK(pair.call({.retry = {.attempts = 5}}).get() == 5);
    runs.push_back(pair.pauses());
    Duration nominal = 100ms;
    for (const Duration pause : runs.back()) {
      CHECK(pause >= nominal * 8 / 10);
      CHECK(pause <= nominal * 12 / 10);
      CHECK(pause != nominal);
      nominal *= 2;
    }
    REQUIRE(runs.back().size() == 4);
  }
  CHECK(runs[0] == runs[1]);  // of one seed
}

TEST_CASE("promise 1: retry waits for as long as who is overloaded asks for") {
  Pair pair;
  pair.failures = {error<Overloaded>("full", 700ms), error<Overloaded>("full", 1ms)};
  CHECK(pair.call({.retry = {.attempts = 3}}).get() == 3);
  const auto pauses = pair.pauses();
  CHECK(pauses[0] == 700ms);
  CHECK(pauses[1] >= 160ms);
  CHECK(pauses[1] <= 240ms);
}

TEST_CASE("promise 1: retry has one deadline for all attempts") {
  Pair pair;
  pair.failures = {error<NotSent>("broken")};
  pair.always_fails = true;
  TimePoint start = pair.world.loop->now();
  const auto failed = outcome(pair.call({.timeout = 2s, .retry = {.attempts = 1000}}));
  CHECK(failed.code() == ErrorCode::not_sent);
  CHECK_FALSE(may_have_run(failed.error()));
  CHECK_THAT(failed.message(), Catch::Contains("no time is left to try again"));
  CHECK(pair.world.loop->now() - start < 2s);
  CHECK(pair.attempts.size() == 5);  // after 100, 300, 700 and 1500 ms, more or less

  std::optional<Duration> left;
  Promise<int> never;
  int calls = 0;
  pair.b.expose("slow", [&] {
    if (++calls == 1) fail_with(error<NotSent>("broken"));
    left = CallContext::current()->time_left();
    return never.get_future();
  });
  start = pair.world.loop->now();
  const auto late =
      outcome(pair.a.peer("b")
                  .with({.timeout = 900ms, .retry = {.attempts = 3, .idempotent = true}})
                  .call<int()>("slow"));
  CHECK(late.code() == ErrorCode::timed_out);
  CHECK(pair.world.loop->now() - start == 900ms);
  CHECK(calls == 2);
  CHECK(left <= 820ms);
  CHECK(left >= 780ms);
}

TEST_CASE("promise 1: retry does not wait for an attempt that would come too late") {
  Pair pair;
  pair.failures = {error<Overloaded>("full", 10s)};
  const TimePoint start = pair.world.loop->now();
  const auto result = outcome(pair.call({.timeout = 5s, .retry = {.attempts = 3}}));
  CHECK(result.code() == ErrorCode::overloaded);
  CHECK(pair.world.loop->now() == start);
  try {
    std::rethrow_exception(result.error());
  } catch (const Overloaded& overloaded) {
    CHECK(overloaded.retry_after() == 10s);
  }
}

TEST_CASE("promise 1: retry: when the loop was late, the last attempt is not made") {
  Pair pair;
  pair.failures = {error<NotSent>("broken")};
  auto call = pair.call({.timeout = 900ms, .retry = {.attempts = 3}});
  pair.world.run_for(1ms);
  pair.world.loop->advance(2s);
  const auto result = outcome(std::move(call));
  CHECK(result.code() == ErrorCode::timed_out);
  CHECK_FALSE(may_have_run(result.error()));
  CHECK(pair.attempts.size() == 1);
}

TEST_CASE("promise 1: retry of 1000 failing calls makes between 100 and 120 more attempts") {
  for (const int attempts : {2, 10}) {
    Pair pair;
    pair.failures = {error<NotSent>("broken")};
    pair.always_fails = true;
    int told = 0;
    for (int i = 0; i < 1000; ++i) {
      const auto result =
          outcome(pair.call({.timeout = 1h, .retry = {.attempts = attempts, .backoff = 1ms}}));
      CHECK(result.code() == ErrorCode::not_sent);
      CHECK_FALSE(may_have_run(result.error()));
      if (result.message().find("retry budget") != std::string::npos) ++told;
    }
    const std::size_t more = pair.attempts.size() - 1000;
    INFO(more << " more attempts");
    CHECK(more >= 100);
    CHECK(more <= 120);
    CHECK(told >= 800);
  }
}

TEST_CASE("promise 1: retry of calls that fail all at once is bounded as well") {
  Pair pair;
  pair.failures = {error<NotSent>("broken")};
  pair.always_fails = true;
  std::vector<Future<int>> calls;
  for (int i = 0; i < 1000; ++i)
    calls.push_back(pair.call({.timeout = 1h, .retry = {.attempts = 5}}));
  for (auto& call : calls)
    CHECK(outcome(std::move(call)).code() == ErrorCode::not_sent);
  CHECK(pair.attempts.size() > 1000);
  CHECK(pair.attempts.size() <= 1120);
}

TEST_CASE("a retry budget is a tenth of the calls, and ten saved up") {
  RetryBudget budget;
  const auto take_all = [&budget] {
    int taken = 0;
    while (budget.take())
      ++taken;
    return taken;
  };
  CHECK(take_all() == 10);
  for (int i = 0; i < 9; ++i)
    budget.add_call();
  CHECK(take_all() == 0);
  budget.add_call();
  CHECK(take_all() == 1);
  for (int i = 0; i < 1000; ++i)
    budget.add_call();
  CHECK(take_all() == 10);
}

TEST_CASE("promise 1: retry finds a peer that was restarted") {
  const test::VirtualWorld world;
  const Node a = world.root("a");
  std::optional<Node> b(world.join("b"));
  std::vector<Promise<int>> never;
  b->expose("work", [&never](int) {
    never.emplace_back();
    return never.back().get_future();
  });
  const CallOptions options{.timeout = 30s, .retry = {.attempts = 5, .idempotent = true}};
  auto idempotent = a.peer("b").with(options).call<int(int)>("work", 21);
  CallOptions other = options;
  other.retry.idempotent = false;
  auto at_most_once = a.peer("b").with(other).call<int(int)>("work", 1);
  world.run_for(1ms);
  REQUIRE(never.size() == 2);
  world.kill("b");
  b.reset();
  auto to_the_dead = a.peer("b").with(other).call<int(int)>("work", 4);  // and so surely not run
  world.network->rejoin("b");
  const Node again = world.join("b");
  again.expose("work", [](int x) { return 2 * x; });
  CHECK(std::move(idempotent).get() == 42);
  CHECK(outcome(std::move(at_most_once)).code() == ErrorCode::peer_lost);
  CHECK(std::move(to_the_dead).get() == 8);
}

TEST_CASE("promise 1: retry does not say of a call that it never ran when an attempt may have") {
  const auto last_error = [](const std::exception_ptr& last) {
    Pair pair;
    pair.failures = {error<PeerLost>("gone"), last};
    const auto result = outcome(pair.call({.retry = {.attempts = 2, .idempotent = true}}));
    CHECK(pair.attempts.size() == 2);
    CHECK(may_have_run(result.error()));
    CHECK_THAT(result.message(),
               Catch::Contains("an earlier attempt may have run") && Catch::Contains("gone"));
    return result.code();
  };
  CHECK(last_error(error<NotSent>("broken")) == ErrorCode::peer_lost);
  CHECK(last_error(error<Overloaded>("full")) == ErrorCode::overloaded);
  CHECK(last_error(error<NotFound>("no function")) == ErrorCode::not_found);
  CHECK(last_error(error<TimedOut>("slow", false)) == ErrorCode::timed_out);
}

TEST_CASE("promise 1: of the attempt that may have run, retry keeps all that its error says") {
  Pair pair;
  pair.failures = {std::make_exception_ptr(Overloaded("full", 200ms, true)),
                   error<NotSent>("broken")};
  const auto result = outcome(pair.call({.retry = {.attempts = 2, .idempotent = true}}));
  try {
    std::rethrow_exception(result.error());
  } catch (const Overloaded& earlier) {
    CHECK(earlier.retry_after() == 200ms);
    CHECK(earlier.may_have_run());
    CHECK_THAT(earlier.what(), Catch::Contains("broken") && Catch::Contains("full"));
  }
}

TEST_CASE("promise 1: of a first attempt that threw it is said that it ran once") {
  Pair pair;
  pair.failures = {error<std::runtime_error>("no disk")};
  const auto result = outcome(pair.call({.retry = {.attempts = 3, .idempotent = true}}));
  CHECK_THAT(explain(result), Catch::Contains("it ran once and threw"));
}

TEST_CASE("promise 1: an attempt without its object is told from one that threw") {
  Pair pair;
  pair.failures = {error<PeerLost>("gone"),
                   std::make_exception_ptr(RemoteError("no disk", "std::runtime_error", "b",
                                                       "the constructor of Store", false))};
  const auto result = outcome(pair.call({.retry = {.attempts = 2, .idempotent = true}}));
  CHECK_THAT(explain(result), !Catch::Contains("it ran once") &&
                                  Catch::Contains("an attempt ran and threw, or may have run"));
  try {
    std::rethrow_exception(result.error());
  } catch (const RemoteError& last) {
    CHECK(last.thrown_what() == std::string("no disk"));
    CHECK_THAT(last.what(), Catch::Contains("an earlier attempt may have run"));
    CHECK(last.may_have_run());
  }
}

}  // namespace retry_test
}  // namespace batchrpc
