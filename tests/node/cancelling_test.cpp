#include <malloc.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "long_tests.hpp"
#include "node/virtual_world.hpp"

// Calls that are cancelled: by Future::cancel(), by dropping the future, by the caller's end.

namespace batchrpc {
namespace cancelling_test {

using namespace std::chrono_literals;
using test::may_have_run;
using test::outcome;

/// Node b has "hold", which is answered when the test says so, and "count", which counts.
struct Pair : test::NodePair {
  std::vector<CallContext> contexts;
  std::vector<Promise<int>> open;
  int counted = 0;

  Pair() {
    b.expose("hold", [this] {
      contexts.push_back(*CallContext::current());
      return open.emplace_back().get_future();
    });
    b.expose("count", [this](const Bytes& /*bytes*/) { return ++counted; });
  }
  [[nodiscard]] Future<int> hold(const CallOptions& options = {}) {
    auto call = a.peer("b").with(options).call<int()>("hold");
    world.run_for(0s);
    return call;
  }
  [[nodiscard]] Future<int> count(std::size_t bytes = 0) const {
    return a.call<int(Bytes)>("b", "count", Bytes::allocate(bytes));
  }
  void next_call_works() {
    const int before = counted;
    CHECK(count().get() == before + 1);
  }
};

TEST_CASE("promise 4: a running call that is cancelled is told, and its answer goes nowhere") {
  Pair pair;
  auto call = pair.hold();
  REQUIRE(pair.contexts.size() == 1);
  CHECK_FALSE(pair.contexts[0].cancelled());
  int stopped = 0;
  const std::stop_callback on_stop(pair.contexts[0].stop_token(), [&] { ++stopped; });
  CHECK(call.cancel());
  REQUIRE(call.ready());
  CHECK_FALSE(call.cancel());
  const auto result = outcome(std::move(call));
  CHECK(result.code() == ErrorCode::cancelled);
  CHECK(may_have_run(result.error()));
  CHECK_THAT(result.message(), Catch::Contains("'hold' on b was cancelled"));
  CHECK_FALSE(pair.contexts[0].cancelled());
  pair.world.run_for(0s);
  CHECK(pair.contexts[0].cancelled());
  CHECK(stopped == 1);
  CHECK(pair.contexts[0].stop_token().stop_requested());
  pair.open[0].set_value(5);
  pair.world.run_for(0s);
  pair.next_call_works();
}

TEST_CASE("promise 4: a coroutine that waits for its cancellation is woken") {
  Pair pair;
  std::vector<std::string> diagnostics;
  const auto work = [&]() -> Future<void> {
    const CallContext context = *CallContext::current();
    diagnostics.emplace_back("begins");
    co_await context.when_cancelled();
    diagnostics.emplace_back(CallContext::current()->cancelled() ? "cancelled" : "not cancelled");
  };
  pair.b.expose("work", work);
  auto call = pair.a.call<void()>("b", "work");
  pair.world.run_for(1s);
  CHECK(diagnostics == std::vector<std::string>{"begins"});
  CHECK(call.cancel());
  pair.world.run_for(0s);
  CHECK(diagnostics == std::vector<std::string>{"begins", "cancelled"});
  pair.next_call_works();
}

TEST_CASE("a wait for the cancellation of a call that is answered ends with BrokenPromise") {
  Pair pair;
  auto call = pair.hold();
  auto cancelled = pair.contexts[0].when_cancelled();
  pair.open[0].set_value(1);
  CHECK(outcome(std::move(cancelled)).code() == ErrorCode::broken_promise);
  CHECK(outcome(pair.contexts[0].when_cancelled()).code() == ErrorCode::broken_promise);
  CHECK_FALSE(pair.contexts[0].stop_token().stop_requested());
  CHECK(call.get() == 1);
  CHECK_FALSE(call.cancel());
}

TEST_CASE("promise 4: what a cancelled handler has called is cancelled along, unless detached") {
  std::vector<Result<int>> inner;  // outlives the coroutine, which the nodes' end ends
  Pair pair;
  const Node root = pair.world.join("client");
  const bool detached = GENERATE(false, true);
  pair.a.expose("relay", [&]() -> Future<int> {
    try {
      inner.emplace_back(
          co_await pair.a.peer("b").with({.detached = detached}).call<int()>("hold"));
    } catch (...) {
      inner.emplace_back(std::current_exception());
    }
    co_return 1;
  });
  auto call = root.call<int()>("a", "relay");
  pair.world.run_for(0s);
  REQUIRE(pair.contexts.size() == 1);
  CHECK(call.cancel());
  pair.world.run_for(0s);
  CHECK(pair.contexts[0].cancelled() != detached);
  REQUIRE(inner.size() == (detached ? 0 : 1));
  if (!detached) CHECK(inner[0].code() == ErrorCode::cancelled);
}

TEST_CASE("promise 4: a call made in a call that was cancelled is not sent") {
  Pair pair;
  std::optional<Result<int>> inner;
  pair.b.expose("late", [&]() -> Future<void> {
    const CallContext context = *CallContext::current();
    co_await context.when_cancelled();
    auto call = pair.b.call<int()>("a", "nothing");
    inner = outcome(std::move(call));
  });
  auto call = pair.a.call<void()>("b", "late");
  pair.world.run_for(0s);
  CHECK(call.cancel());
  pair.world.run_for(0s);
  REQUIRE(inner);
  CHECK(inner->code() == ErrorCode::cancelled);
  CHECK_FALSE(may_have_run(inner->error()));
}

TEST_CASE("promise 4: dropping the future of a call marked so cancels it, of another does not") {
  Pair pair;
  const bool marked = GENERATE(false, true);
  {
    const auto call = pair.hold({.cancel_when_dropped = marked});
    auto other = pair.hold({.cancel_when_dropped = marked});
    other = Future<int>();
    Future<int>& same = other;
    other = std::move(same);
    pair.world.run_for(0s);
    CHECK(pair.contexts[1].cancelled() == marked);
    CHECK_FALSE(pair.contexts[0].cancelled());
  }
  pair.world.run_for(0s);
  CHECK(pair.contexts[0].cancelled() == marked);
  // Somebody waits for it.
  int got = 0;
  pair.hold({.cancel_when_dropped = marked}).then([&](int value) { got = value; });
  pair.world.run_for(0s);
  CHECK_FALSE(pair.contexts[2].cancelled());
  pair.open[2].set_value(9);
  pair.world.run_for(0s);
  CHECK(got == 9);
}

TEST_CASE("only the futures of calls can be cancelled") {
  Pair pair;
  CHECK_FALSE(make_ready_future(1).cancel());
  Promise<int> promise;
  CHECK_FALSE(promise.get_future().cancel());
  auto then = pair.hold().then([](int value) { return value + 1; });
  CHECK_FALSE(then.cancel());
  pair.open[0].set_value(1);
  CHECK(then.get() == 2);
}

TEST_CASE("promise 4: a call that never left never runs, and says so") {
  Pair pair;
  const Node c = pair.world.join("c");
  pair.world.network->partition("b", "c");
  auto call = c.call<int(Bytes)>("b", "count", Bytes());
  CHECK(call.cancel());
  const auto result = outcome(std::move(call));
  CHECK(result.code() == ErrorCode::cancelled);
  CHECK_FALSE(may_have_run(result.error()));
  pair.world.network->heal("b", "c");
  pair.world.run_for(1min);
  CHECK(pair.counted == 0);
}

TEST_CASE("promise 4: a call that waits for a lock never starts, and those behind it do") {
  Pair pair;
  const auto mutex = std::make_shared<AsyncMutex>();
  std::vector<int> ran;
  pair.b.expose("f", [&](int number) { ran.push_back(number); }, {.exclusive = mutex});
  auto guard = mutex->lock().get();
  auto first = pair.a.call<void(int)>("b", "f", 1);
  auto second = pair.a.call<void(int)>("b", "f", 2);
  pair.world.run_for(1s);
  CHECK(first.cancel());
  pair.world.run_for(1s);
  guard.unlock();
  second.get();
  CHECK(ran == std::vector<int>{2});
  CHECK(mutex->try_lock());
}

TEST_CASE("promise 4: a call that waits for its function to be exposed never starts") {
  test::VirtualWorld world;
  const Node a = world.root("a");
  auto options = world.joining("b");
  options.expose_within = 1h;
  const Node b(options);
  int ran = 0;
  auto call = a.call<void()>("b", "f");
  world.run_for(1s);
  CHECK(call.cancel());
  world.run_for(1s);
  b.expose("f", [&] { ++ran; });
  a.call<void()>("b", "f").get();
  CHECK(ran == 1);
}

TEST_CASE("calls that wait for their function and are cancelled make room for others") {
  test::VirtualWorld world;
  const Node a = world.root("a");
  auto options = world.joining("b");
  options.expose_within = 1h;
  const Node b(options);
  for (int i = 0; i < 25; ++i) {
    std::vector<Future<void>> calls;
    for (int j = 0; j < 1000; ++j)
      calls.push_back(a.call<void()>("b", "f"));
    world.run_for(0s);
    for (auto& call : calls)
      CHECK(call.cancel());
    world.run_for(0s);
  }
  auto call = a.call<void()>("b", "f");
  world.run_for(0s);
  CHECK_FALSE(call.ready());
  b.expose("f", [] {});
  call.get();
}

TEST_CASE("promise 4: a call whose payloads are still to come never starts, and surely never ran") {
  Pair pair;
  pair.next_call_works();
  auto call = pair.count(std::size_t{64} << 20);
  CHECK(call.cancel());
  const auto result = outcome(std::move(call));
  CHECK(result.code() == ErrorCode::cancelled);
  CHECK_FALSE(may_have_run(result.error()));
  pair.world.run_for(1s);
  CHECK(pair.counted == 1);
  pair.next_call_works();
}

TEST_CASE("promise 4: a caller that is gone cancels its calls") {
  Pair pair;
  const Node c = pair.world.join("c");
  const auto mutex = std::make_shared<AsyncMutex>();
  int ran = 0;
  pair.b.expose("f", [&] { ++ran; }, {.exclusive = mutex});
  auto guard = mutex->lock().get();
  auto running = c.call<int()>("b", "hold");
  auto waiting = c.call<void()>("b", "f");
  auto other = pair.a.call<void()>("b", "f");
  pair.world.run_for(1s);
  const auto cancelled = pair.contexts.at(0).when_cancelled();
  pair.world.kill("c");
  pair.world.run_for(1min);
  CHECK(cancelled.ready());
  CHECK(pair.contexts[0].cancelled());
  guard.unlock();
  pair.world.run_for(1s);
  CHECK(ran == (other.result() ? 1 : 0));
}

TEST_CASE("a caller that no longer waits, since its time was over, has the callee told") {
  Pair pair;
  const auto call = pair.hold({.timeout = 1s});
  CHECK_FALSE(pair.contexts[0].cancelled());
  pair.world.run_for(1s);
  CHECK(call.result().code() == ErrorCode::timed_out);
  pair.world.run_for(0s);
  CHECK(pair.contexts[0].cancelled());
}

TEST_CASE("promise 4: a cancellation that crosses the answer on its way changes nothing") {
  test::VirtualWorld world;
  world.network->set_link({.latency = 10ms});
  const Node a = world.root("a");
  const Node b = world.join("b");
  int ran = 0;
  b.expose("f", [&] { return ++ran; });
  CHECK(a.call<int()>("b", "f").get() == 1);
  auto call = a.call<int()>("b", "f");
  world.run_for(15ms);
  CHECK(ran == 2);
  CHECK(call.cancel());
  CHECK(outcome(std::move(call)).code() == ErrorCode::cancelled);
  world.run_for(1s);
  CHECK(a.call<int()>("b", "f").get() == 3);
}

TEST_CASE("a callback of the cancelled future may do all that a callback may") {
  Pair pair;
  std::optional<Future<int>> call = pair.hold();
  int next = 0;
  call->then([&](const Result<int>& result) {
    CHECK(result.code() == ErrorCode::cancelled);
    call.reset();
    next = pair.count().get();
  });
  CHECK(call->cancel());
  CHECK(next == 1);
}

TEST_CASE("promise 4: 10^6 cancelled calls leave at most 1 MiB") {
  const int calls = test::times_on_one_thread(1'000'000, 1'000'000);
  constexpr int kAtOnce = 1000;
  Pair pair;
  const auto mutex = std::make_shared<AsyncMutex>();
  pair.b.expose("f", [](const Bytes& /*bytes*/) {}, {.exclusive = mutex});
  pair.b.expose("work", []() -> Future<void> {
    const CallContext context = *CallContext::current();
    co_await context.when_cancelled();
  });
  const auto round = [&](bool sent) {
    const auto guard = mutex->lock().get();
    std::vector<Future<void>> made;
    for (int i = 0; i < kAtOnce; ++i) {
      if (i % 4 == 0) {
        made.push_back(pair.a.call<void()>("b", "work"));
      } else {
        made.push_back(pair.a.call<void(Bytes)>("b", "f", Bytes::allocate(100)));
      }
    }
    if (sent) pair.world.run_for(0s);
    for (auto& call : made)
      call.cancel();
    pair.world.run_for(0s);
  };
  round(true);
  pair.world.run_for(1min);
  const std::size_t before = mallinfo2().uordblks;
  for (int i = 0; i < calls; i += kAtOnce)
    round(i / kAtOnce % 4 != 0);
  pair.world.run_for(1min);
  const std::size_t after = mallinfo2().uordblks;
  const std::size_t left = after > before ? after - before : 0;
  WARN(calls << " cancelled calls leave " << left << " bytes");
  CHECK(left <= std::size_t{1} << 20);
  pair.next_call_works();
}

}  // namespace cancelling_test
}  // namespace batchrpc
