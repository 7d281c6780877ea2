#include <atomic>
#include <catch2/catch.hpp>
#include <latch>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/real_nodes.hpp"
#include "node/retry_pair.hpp"

// Promise 1: calls that may be tried again: how they end, what they hold, and which they are.

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
namespace retry_ends_test {

using namespace std::chrono_literals;
using test::error;
using test::fail_with;
using test::may_have_run;
using test::outcome;
using Pair = test::RetryPair;

TEST_CASE(
    "promise 1: retry ends with its node, which names the calls that wait waiting to be retried") {
  Pair pair;
  pair.failures.assign(3, error<Overloaded>("full", 10s));
  std::vector<Future<int>> calls;
  for (int i = 0; i < 3; ++i)
    calls.push_back(pair.call({.retry = {.attempts = 3}}));
  pair.world.run_for(1s);
  REQUIRE(pair.attempts.size() == 3);
  const TimePoint start = pair.world.loop->now();
  CHECK(pair.a.shutdown(5s) == std::vector<std::string>{"b: f (3 calls), waiting to be retried"});
  CHECK(pair.world.loop->now() - start < 5s);
  for (auto& call : calls) {
    REQUIRE(call.ready());
    const auto result = outcome(std::move(call));
    CHECK(result.code() == ErrorCode::shut_down);
    CHECK_FALSE(may_have_run(result.error()));
    CHECK_THAT(result.message(), Catch::Contains("waiting to be retried"));
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
  auto call =
      pair.a.peer("b").with({.retry = {.attempts = 3, .idempotent = true}}).call<int()>("later");
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
  auto call = pair.a.peer("b")
                  .with({.retry = {.attempts = 5}})
                  .call<std::size_t(Bytes, Bytes)>("sum", Bytes(std::move(memory), bytes), small);
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
  const auto both =
      when_all(
          pair.a.each(std::vector<std::string>{"a", "b"}).with(options).call<int(int)>("twice", 4))
          .get();
  CHECK(both == std::vector<int>{8, 8});

  pair.a.expose<&retries::Sum::add>();
  pair.a.expose("sum", [sum = pair.a.own(std::make_shared<retries::Sum>())] { return sum; });
  const auto sum = pair.b.call<RRef<retries::Sum>()>("a", "sum").get();
  CHECK(sum.with(options).call<&retries::Sum::add>(3).get() == 3);
}

TEST_CASE("promise 1: retry refuses calls that can be made once only, and options out of range") {
  Pair pair;
  pair.b.expose("take", [](const RRef<retries::Sum>&) {});
  const auto handle = pair.a.own(std::make_shared<retries::Sum>());
  CHECK(outcome(pair.a.peer("b")
                    .with({.retry = {.attempts = 2}})
                    .call<void(RRef<retries::Sum>)>("take", handle))
            .code() == ErrorCode::invalid_argument);
  CHECK(outcome(pair.a.peer("b").call<void(RRef<retries::Sum>)>("take", handle)));

  detail::OutgoingOptions into;
  into.retry.attempts = 2;
  into.payload_target = std::make_unique<detail::PayloadTarget>(
      [](std::size_t, std::size_t) { return std::span<std::byte>(); });
  const auto submit = [&](const detail::FunctionKey& key, detail::OutgoingOptions&& options,
                          Encoder& encoder, detail::ReplyHandler&& handler) {
    detail::NodeAccess::submit(detail::NodeAccess::core(pair.a).get(), "b", key, std::move(options),
                               encoder, std::move(handler));
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
  CHECK(outcome(pair.a.peer("nobody").with(options).call<int()>("f")).code() ==
        ErrorCode::not_found);
  CHECK(outcome(pair.call({.timeout = -1s, .retry = options.retry})).code() ==
        ErrorCode::timed_out);
  CHECK(outcome(pair.a.peer("b").with(options).call<int()>(std::string(5000, 'n'))).code() ==
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
  auto call = pair.a.peer("b")
                  .with({.retry = {.attempts = 2}})
                  .call<void(Bytes)>("swallow", Bytes(std::move(owner), memory));
  CHECK(outcome(std::move(call)).code() == ErrorCode::not_sent);
  pair.world.run_for(5s);
  CHECK(answers == 2);
}

TEST_CASE("promise 1: retry: a peer that ends in good order and is started again is called again") {
  test::VirtualWorld world;
  const Node a = world.root("a");
  std::optional<Node> b(world.join("b"));
  Promise<void> never;
  b->expose("stuck", [&] { return never.get_future(); });
  const auto stuck = a.call<void()>("b", "stuck");
  world.run_for(1ms);
  std::optional<Future<int>> call;
  world.loop->schedule(world.loop->now() + 100ms, [&] {
    call = a.peer("b")
               .with({.timeout = 1min, .retry = {.attempts = 8, .backoff = 200ms}})
               .call<int()>("f");
  });
  b->shutdown(1s);  // refuses meanwhile what is new
  b.reset();
  const Node again = world.join("b");
  again.expose("f", [] { return 7; });
  CHECK(call.value().get() == 7);
}

TEST_CASE("promise 1: retry: threads that call over sockets, and an end in between, lose no call",
          "[threads]") {
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
      calls.push_back(pair.a.peer("b").with(options).call<int(int)>("flaky", i));
      if (i % 50 == 0) (void)outcome(pair.a.peer("b").with(options).call<int(int)>("flaky", i));
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
    last.push_back(pair.a.peer("b").with(options).call<int(int)>("flaky", i));
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

}  // namespace retry_ends_test
}  // namespace batchrpc
