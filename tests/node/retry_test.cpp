#include <atomic>
#include <catch2/catch.hpp>
#include <latch>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "batchrpc/node/caller.hpp"
#include "node/node_core.hpp"
#include "node/real_nodes.hpp"
#include "node/retried_call.hpp"
#include "node/retries.hpp"
#include "node/virtual_world.hpp"

// Promise 1: what the library does with calls that may be tried again.

namespace retries {

/// Adds, from the third time on.
class Sum {
 public:
  int add(int n) {
    if (++calls_ < 3) {
      throw batchrpc::detail::DidNotRun{std::make_exception_ptr(batchrpc::NotSent("broken"))};
    }
    return value_ += n;
  }

 private:
  int calls_ = 0;
  int value_ = 0;
};
int twice(int x) { return 2 * x; }

}  // namespace retries

namespace batchrpc {
namespace {

using namespace std::chrono_literals;
using test::may_have_run;
using test::outcome;

static_assert(std::is_trivially_copyable_v<CallOptions>);
static_assert(std::is_trivially_destructible_v<CallOptions>);

template <class E, class... Args>
std::exception_ptr error(Args... args) {
  return std::make_exception_ptr(E(args...));
}

/// As if the call had failed so before its function began.
[[noreturn]] void fail_with(const std::exception_ptr& error) { throw detail::DidNotRun{error}; }

/// Of which b exposes "f", whose first attempts fail as told; then it answers how many there were.
struct Pair : test::NodePair {
  std::vector<std::exception_ptr> failures;
  bool always_fails = false;  // with the last of these
  std::vector<TimePoint> attempts;

  Pair() {
    b.expose("f", [this] {
      attempts.push_back(world.loop->now());
      const std::size_t number = attempts.size();
      if (number <= failures.size()) fail_with(failures[number - 1]);
      if (always_fails) fail_with(failures.back());
      return static_cast<int>(number);
    });
  }
  [[nodiscard]] Future<int> call(const CallOptions& options) const {
    return a.call_with<int()>(options, "b", "f");
  }
  /// Between one attempt and the next.
  [[nodiscard]] std::vector<Duration> pauses() const {
    std::vector<Duration> pauses;
    for (std::size_t i = 1; i < attempts.size(); ++i)
      pauses.push_back(attempts[i] - attempts[i - 1]);
    return pauses;
  }
};

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
      {error<ShutDown>("over"), 1, 1},
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
      pair.a.call_with<void()>({.retry = {.attempts = 5, .idempotent = true}}, "b", "throws"));
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
  const auto late = outcome(pair.a.call_with<int()>(
      {.timeout = 900ms, .retry = {.attempts = 3, .idempotent = true}}, "b", "slow"));
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
  auto idempotent = a.call_with<int(int)>(options, "b", "work", 21);
  CallOptions other = options;
  other.retry.idempotent = false;
  auto at_most_once = a.call_with<int(int)>(other, "b", "work", 1);
  world.run_for(1ms);
  REQUIRE(never.size() == 2);
  world.kill("b");
  b.reset();
  auto to_the_dead = a.call_with<int(int)>(other, "b", "work", 4);  // and so surely not run
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

TEST_CASE(
    "promise 1: retry ends with its node, which names the calls that wait to be tried again") {
  Pair pair;
  pair.failures.assign(3, error<Overloaded>("full", 10s));
  std::vector<Future<int>> calls;
  for (int i = 0; i < 3; ++i)
    calls.push_back(pair.call({.retry = {.attempts = 3}}));
  pair.world.run_for(1s);
  REQUIRE(pair.attempts.size() == 3);
  const TimePoint start = pair.world.loop->now();
  CHECK(pair.a.shutdown(5s) == std::vector<std::string>{"b: f (3 calls), to be tried again"});
  CHECK(pair.world.loop->now() - start < 5s);
  for (auto& call : calls) {
    REQUIRE(call.ready());
    const auto result = outcome(std::move(call));
    CHECK(result.code() == ErrorCode::shut_down);
    CHECK_FALSE(may_have_run(result.error()));
    CHECK_THAT(result.message(), Catch::Contains("to be tried again"));
  }
  pair.world.run_for(1min);
  CHECK(pair.attempts.size() == 3);
}

TEST_CASE("promise 1: retry begins no pause when its node is shutting down") {
  Pair pair;
  pair.b.expose("later", [&] {
    Promise<int> promise;
    auto answer = promise.get_future();
    pair.world.loop->schedule(
        pair.world.loop->now() + 100ms,
        [promise = std::move(promise)]() mutable { promise.set_error(Overloaded("full")); });
    return answer;
  });
  auto call = pair.a.call_with<int()>({.retry = {.attempts = 3, .idempotent = true}}, "b", "later");
  pair.world.run_for(1ms);
  CHECK(pair.a.shutdown(5s).empty());
  const auto result = outcome(std::move(call));
  CHECK(result.code() == ErrorCode::overloaded);
  CHECK_THAT(result.message(), Catch::Contains("the node is shutting down"));
}

TEST_CASE("promise 1: retry shares large payloads, and lets go of them when the call is over") {
  constexpr std::size_t kSize = 1 << 20;
  Pair pair;
  std::size_t right = 0;
  std::size_t attempts = 0;
  pair.b.expose("sum", [&](const Bytes& large, const Bytes& small) {
    if (large.size() == kSize && large.data()[kSize - 1] == std::byte{7} &&
        small.data()[0] == std::byte{3}) {
      ++right;
    }
    if (++attempts < 3) fail_with(error<NotSent>("broken"));
    return large.size();
  });
  auto memory = std::make_shared<std::vector<std::byte>>(kSize, std::byte{7});
  const std::weak_ptr<std::vector<std::byte>> alive = memory;
  const std::span<const std::byte> bytes(*memory);
  const Bytes small = Bytes::copy(std::vector<std::byte>(10, std::byte{3}));
  auto call = pair.a.call_with<std::size_t(Bytes, Bytes)>({.retry = {.attempts = 5}}, "b", "sum",
                                                          Bytes(std::move(memory), bytes), small);
  pair.world.run_for(10ms);
  CHECK(attempts == 1);
  CHECK_FALSE(alive.expired());
  CHECK(std::move(call).get() == kSize);
  CHECK(attempts == 3);
  CHECK(right == 3);
  pair.world.run_for(5s);  // what the peer has to acknowledge
  CHECK(alive.expired());
}

TEST_CASE("promise 1: retry of calls to many and of an object's methods") {
  Pair pair;
  int failing = 2;
  const auto function = [&failing](int x) {
    if (failing-- > 0) fail_with(error<NotSent>("broken"));
    return 2 * x;
  };
  pair.b.expose("twice", function);
  pair.a.expose("twice", [](int x) { return 2 * x; });
  const CallOptions options{.retry = {.attempts = 3}};
  const auto both = when_all(pair.a.call_all_with<int(int)>(
                                 options, std::vector<std::string>{"a", "b"}, "twice", 4))
                        .get();
  CHECK(both == std::vector<int>{8, 8});

  pair.a.expose<&retries::Sum::add>();
  pair.a.expose("sum", [sum = pair.a.own(std::make_shared<retries::Sum>())] { return sum; });
  const auto sum = pair.b.call<RRef<retries::Sum>()>("a", "sum").get();
  CHECK(sum.call_with<&retries::Sum::add>(options, 3).get() == 3);
}

TEST_CASE("promise 1: retry refuses calls that can be made once only, and options out of range") {
  Pair pair;
  pair.b.expose("take", [](const RRef<retries::Sum>&) {});
  const auto handle = pair.a.own(std::make_shared<retries::Sum>());
  CHECK(outcome(pair.a.call_with<void(RRef<retries::Sum>)>({.retry = {.attempts = 2}}, "b", "take",
                                                           handle))
            .code() == ErrorCode::invalid_argument);
  CHECK(outcome(pair.a.call_with<void(RRef<retries::Sum>)>({}, "b", "take", handle)));

  detail::OutgoingOptions into;
  into.retry.attempts = 2;
  into.payload_target = std::make_unique<detail::PayloadTarget>(
      [](std::size_t, std::size_t) { return std::span<std::byte>(); });
  const auto submit = [&](const detail::FunctionKey& key, detail::OutgoingOptions options,
                          Encoder& encoder, detail::ReplyHandler&& handler) {
    pair.a.submit("b", key, std::move(options), encoder, std::move(handler));
  };
  CHECK(outcome(detail::send_call<int>(submit, detail::function_key("f", signature<int>()),
                                       std::move(into)))
            .code() == ErrorCode::invalid_argument);

  for (const RetryOptions& wrong : {RetryOptions{.attempts = 0}, RetryOptions{.attempts = -1},
                                    RetryOptions{.attempts = 2, .backoff = -1ms}}) {
    CHECK(outcome(pair.call({.retry = wrong})).code() == ErrorCode::invalid_argument);
  }
  CHECK(pair.attempts.empty());
}

TEST_CASE("promise 1: retry: what fails where the call is made is as of any other") {
  Pair pair;
  const CallOptions options{.timeout = 1s, .retry = {.attempts = 3, .idempotent = true}};
  CHECK(outcome(pair.a.call_with<int()>(options, "nobody", "f")).code() == ErrorCode::not_found);
  CHECK(outcome(pair.call({.timeout = -1s, .retry = options.retry})).code() ==
        ErrorCode::timed_out);
  CHECK(outcome(pair.a.call_with<int()>(options, "b", std::string(5000, 'n'))).code() ==
        ErrorCode::invalid_argument);
  CHECK(pair.call({.timeout = Duration::max(), .retry = options.retry}).get() == 1);
  pair.a.shutdown(0s);
  CHECK(outcome(pair.call(options)).code() == ErrorCode::shut_down);
}

TEST_CASE("promise 1: retry: a cancelled call makes no more attempts") {
  Pair pair;
  pair.failures.assign(3, error<PeerLost>("gone"));
  const CallOptions options{.retry = {.attempts = 3, .idempotent = true}};
  SECTION("between two of them it ends at once") {
    auto call = pair.call(options);
    pair.world.run_for(1ms);
    REQUIRE(pair.attempts.size() == 1);
    CHECK(call.cancel());
    REQUIRE(call.ready());
    CHECK_FALSE(call.cancel());
    const auto result = outcome(std::move(call));
    CHECK(result.code() == ErrorCode::cancelled);
    CHECK(may_have_run(result.error()));
  }
  SECTION("the one that is under way is cancelled") {
    auto call = pair.call(options);
    CHECK(call.cancel());
    REQUIRE(call.ready());
    CHECK(outcome(std::move(call)).code() == ErrorCode::cancelled);
  }
  SECTION("also when its future is dropped, if it is marked so") {
    CallOptions dropped = options;
    dropped.cancel_when_dropped = true;
    static_cast<void>(pair.call(dropped));
  }
  SECTION("one that has ended stays as it is") {
    pair.failures.clear();
    auto call = pair.call(options);
    pair.world.run_for(1s);
    CHECK(call.ready());
    CHECK_FALSE(call.cancel());
  }
  pair.world.run_for(1min);
  CHECK(pair.attempts.size() <= 1);
}

TEST_CASE("promise 1: retry: what a call's end lets go of may call the node") {
  Pair pair;
  pair.b.expose<&retries::twice>();
  pair.b.expose("swallow", [](const Bytes&) { fail_with(error<NotSent>("broken")); });
  int answers = 0;
  std::vector<std::byte> memory(100'000);
  std::shared_ptr<const void> owner(
      memory.data(), [&](const void*) { answers += pair.a.call<&retries::twice>("b", 1).get(); });
  auto call = pair.a.call_with<void(Bytes)>({.retry = {.attempts = 2}}, "b", "swallow",
                                            Bytes(std::move(owner), memory));
  CHECK(outcome(std::move(call)).code() == ErrorCode::not_sent);
  pair.world.run_for(5s);
  CHECK(answers == 2);
}

TEST_CASE("promise 1: retry: threads that call over sockets, and an end in between, lose no call") {
  constexpr int kCalls = 400;
  test::RealPair pair(2);
  std::atomic<int> ran{0};
  pair.b.expose("flaky", [&ran](int x) {
    if (++ran % 3 == 0) throw Overloaded("full", 1ms);
    return x;
  });
  const CallOptions options{.timeout = 60s,
                            .retry = {.attempts = 4, .backoff = 1ms, .idempotent = true}};
  std::atomic<int> answered{0};
  std::atomic<int> overloaded{0};
  std::atomic<int> shut_down{0};
  std::atomic<int> otherwise{0};
  const auto count = [&](const Result<int>& result) {
    if (result) {
      ++answered;
    } else if (result.code() == ErrorCode::overloaded) {
      ++overloaded;
    } else if (result.code() == ErrorCode::shut_down) {
      ++shut_down;
    } else {
      ++otherwise;
    }
  };
  std::latch going(2);
  const auto call_often = [&] {
    going.arrive_and_wait();
    std::vector<Future<int>> calls;
    for (int i = 0; i < kCalls; ++i) {
      calls.push_back(pair.a.call_with<int(int)>(options, "b", "flaky", i));
      if (i % 50 == 0) (void)outcome(pair.a.call_with<int(int)>(options, "b", "flaky", i));
    }
    for (auto& call : calls)
      count(outcome(std::move(call)));
  };
  std::thread first(call_often);
  std::thread second(call_often);
  first.join();
  second.join();
  CHECK(answered + overloaded == 2 * kCalls);
  CHECK(answered >= kCalls);
  CHECK(shut_down + otherwise == 0);
  // More attempts than the budget were not made: ten, and a tenth of the calls.
  CHECK(ran <= 2 * (kCalls + kCalls / 50) * 11 / 10 + 10);

  // Some of these are under way, and some pause, when their node ends.
  std::vector<Future<int>> last;
  for (int i = 0; i < kCalls; ++i)
    last.push_back(pair.a.call_with<int(int)>(options, "b", "flaky", i));
  pair.a.shutdown(0s);
  answered = 0;
  overloaded = 0;
  for (auto& call : last) {
    REQUIRE(call.ready());
    count(outcome(std::move(call)));
  }
  CHECK(answered + overloaded + shut_down == kCalls);
  CHECK(otherwise == 0);
}

}  // namespace
}  // namespace batchrpc
