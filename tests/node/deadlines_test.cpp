#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/virtual_world.hpp"

// Deadlines travel with calls, and with those that these make.

namespace batchrpc {
namespace deadlines_test {

using namespace std::chrono_literals;
using test::may_have_run;
using test::outcome;
using test::VirtualWorld;

/// A future that is ready in that time.
Future<void> after(const VirtualWorld& world, Duration time) {
  auto promise = std::make_shared<Promise<void>>();
  auto future = promise->get_future();
  world.loop->schedule(world.loop->now() + time, [promise] { promise->set_value(); });
  return future;
}

/// Each of a chain of nodes has the function "hop", which calls that of the next.
struct Chain {
  VirtualWorld world;
  std::vector<Node> nodes;
  CallOptions options{};         // of the calls that hops make
  Duration pause{};              // before a hop makes its call
  std::vector<Duration> left{};  // at each start
  std::vector<int> starts;       // by node
  Result<int> inner = 0;         // how the last call of a hop ended

  explicit Chain(const std::vector<std::string>& names) : starts(names.size()) {
    for (const std::string& name : names)
      nodes.push_back(nodes.empty() ? world.root(name) : world.join(name));
    for (std::size_t i = 1; i < nodes.size(); ++i)
      nodes[i].expose("hop", [this, i] { return hop(i); });
  }
  Future<int> hop(std::size_t at) {
    left.push_back(CallContext::current()->time_left().value());
    ++starts[at];
    if (at + 1 == nodes.size()) co_return 1;
    if (pause > Duration::zero()) co_await after(world, pause);
    try {
      inner = co_await nodes[at].peer(nodes[at + 1].name()).with(options).call<int()>("hop");
    } catch (...) {
      inner = std::current_exception();
    }
    co_return 1 + inner.value();
  }
};

TEST_CASE("a call made in a handler has the time that is left of the handler's call") {
  Chain chain({"a", "b", "c", "d"});
  CHECK(chain.nodes[0].peer("b").with({.timeout = 700ms}).call<int()>("hop").get() == 3);
  CHECK(chain.left == std::vector<Duration>{700ms, 700ms, 700ms});
}

TEST_CASE("also after a co_await, when less is left, and one's own time-out where it is less") {
  Chain chain({"a", "b", "c", "d"});
  chain.pause = 100ms;
  CHECK(chain.nodes[0].peer("b").with({.timeout = 700ms}).call<int()>("hop").get() == 3);
  CHECK(chain.left == std::vector<Duration>{700ms, 600ms, 500ms});
  chain.left.clear();
  chain.options.timeout = 550ms;
  CHECK(chain.nodes[0].peer("b").with({.timeout = 700ms}).call<int()>("hop").get() == 3);
  CHECK(chain.left == std::vector<Duration>{700ms, 550ms, 450ms});
}

TEST_CASE("a call of an endless one has its own time-out, and Duration::max() is bounded as well") {
  Chain chain({"a", "b", "c"});
  bool unlimited = false;
  chain.nodes[1].unexpose("hop");
  chain.nodes[1].expose("hop", [&] {
    unlimited = !CallContext::current()->time_left();
    return chain.nodes[1].call<int()>("c", "hop");
  });
  CHECK(chain.nodes[0].peer("b").with({.timeout = Duration::max()}).call<int()>("hop").get() == 1);
  CHECK(unlimited);
  CHECK(chain.left == std::vector<Duration>{60s});
  chain.nodes[1].unexpose("hop");
  chain.nodes[1].expose("hop", [&] {
    return chain.nodes[1].peer("c").with({.timeout = Duration::max()}).call<int()>("hop");
  });
  CHECK(chain.nodes[0].peer("b").with({.timeout = 5s}).call<int()>("hop").get() == 1);
  CHECK(chain.left.back() == 5s);
}

TEST_CASE("a call in a call whose time is over is not sent, unless it is detached") {
  Chain chain({"a", "b", "c"});
  chain.pause = 2s;
  const bool detached = GENERATE(false, true);
  chain.options.detached = detached;
  const auto result = outcome(chain.nodes[0].peer("b").with({.timeout = 1s}).call<int()>("hop"));
  CHECK(result.code() == ErrorCode::timed_out);
  chain.world.run_for(2s);
  CHECK(chain.starts == std::vector<int>{0, 1, detached ? 1 : 0});
  REQUIRE(chain.inner.has_value() == detached);
  if (!detached) {
    CHECK_FALSE(may_have_run(chain.inner.error()));
    CHECK_THAT(chain.inner.message(), Catch::Contains("'hop'"));
  } else {
    CHECK(chain.left.back() == 60s);
  }
}

TEST_CASE(
    "a call ends with the time of the call in which it was made, whose caller gets TimedOut") {
  const Duration latency = GENERATE(0ms, 3ms);
  const Duration timeout = GENERATE(150ms, 4s);
  std::vector<Result<int>> inner;  // outlives the coroutine, which the nodes' end ends
  std::vector<Duration> after;
  Promise<int> never;
  VirtualWorld world;
  const Node a = world.root("a");
  const Node b = world.join("b");
  const Node c = world.join("c");
  world.network->set_link({.latency = latency});
  c.expose("never", [&] { return never.get_future(); });
  b.expose("relay", [&]() -> Future<int> {
    const TimePoint called = world.loop->now();
    try {
      inner.emplace_back(co_await b.call<int()>("c", "never"));
    } catch (...) {
      inner.emplace_back(std::current_exception());
    }
    after.push_back(world.loop->now() - called);
    co_return 1;
  });
  const auto result = outcome(a.peer("b").with({.timeout = timeout}).call<int()>("relay"));
  CHECK(result.code() == ErrorCode::timed_out);
  world.run_for(1s);
  REQUIRE(inner.size() == 1);
  CAPTURE(inner[0].message(), after[0] / 1us);
  // Whichever is first: its deadline is over, or the caller says that he waits no longer.
  const bool timed_out = inner[0].code() == ErrorCode::timed_out;
  CHECK((timed_out || inner[0].code() == ErrorCode::cancelled));
  CHECK(after[0] <= timeout);
  CHECK(after[0] >= timeout - 10ms);
}

TEST_CASE(
    "a callback of then() is part of the call in which it was attached, until that is answered") {
  VirtualWorld world;
  const Node a = world.root("a");
  const Node b = world.join("b");
  std::vector<std::optional<Duration>> seen;
  Promise<void> go;
  const Future<void> gate = go.get_future();
  const auto see = [&] {
    const CallContext* const context = CallContext::current();
    seen.push_back(context != nullptr ? context->time_left() : std::nullopt);
  };
  b.expose("open", [&] { go.set_value(); });  // runs the callbacks of others
  b.expose("wait", [&] { return gate.then([&] { see(); }); });
  gate.then([&] { see(); });  // of no call
  auto waits = a.peer("b").with({.timeout = 9s}).call<void()>("wait");
  world.run_for(1s);
  a.peer("b").with({.timeout = 3s}).call<void()>("open").get();
  waits.get();
  REQUIRE(seen.size() == 2);
  CHECK_FALSE(seen[0]);
  CHECK(seen[1] == 8s);
}

TEST_CASE("a call in a call that takes too long times out for both, over any number of hops") {
  const auto timeout = GENERATE(50ms, 700ms, 1000ms, 1500ms, 5000ms);
  const bool blocking = GENERATE(false, true);
  Chain chain({"a", "b", "c", "d"});
  std::vector<Promise<int>> open;
  chain.nodes[3].unexpose("hop");
  chain.nodes[3].expose("hop", [&] { return open.emplace_back().get_future(); });
  if (blocking) {
    chain.nodes[1].unexpose("hop");
    chain.nodes[1].expose("hop", [&] { return chain.nodes[1].call<int()>("c", "hop").get(); });
  }
  const auto result =
      outcome(chain.nodes[0].peer("b").with({.timeout = timeout}).call<int()>("hop"));
  CHECK(result.code() == ErrorCode::timed_out);
  CHECK(may_have_run(result.error()));
  CHECK(open.size() == 1);
  chain.world.run_for(1s);  // the hops have ended, too
}

TEST_CASE("a handler that fails with TimedOut at the end of its call's time has timed out") {
  VirtualWorld world;
  const Node a = world.root("a");
  const Node b = world.join("b");
  b.expose("wait", [&](Duration before_the_end) -> Future<int> {
    co_await after(world, *CallContext::current()->time_left() - before_the_end);
    throw TimedOut("the disk", true);
  });
  const auto wait = [&](Duration before_the_end) {
    return outcome(
        a.peer("b").with({.timeout = 500ms}).call<int(Duration)>("wait", before_the_end));
  };
  const auto late = wait(5ms);
  CHECK(late.code() == ErrorCode::timed_out);
  CHECK(may_have_run(late.error()));
  CHECK_THAT(late.message(), Catch::Contains("'wait' on b") && Catch::Contains("the disk"));
  CHECK_THAT(explain(late.error()), Catch::Contains("Promise 3, deadlines travel"));
  const auto early = wait(20ms);  // its own affair
  CHECK(early.code() == ErrorCode::remote_error);
}

TEST_CASE("a handler whose call had less time than its own fails with that call's TimedOut") {
  const auto [outer, inner] = GENERATE(table<Duration, Duration>(
      {{100ms, 20ms}, {100ms, 99ms}, {900ms, 850ms}, {2000ms, 1500ms}, {60s, 59s}}));
  CAPTURE(outer.count(), inner.count());
  test::NodePair pair;
  Promise<int> never;
  pair.a.expose("never", [&never] { return never.get_future(); }, {.short_handler = true});
  pair.b.expose("ask", [&, inner = inner] {
    return pair.b.peer("a").with({.timeout = inner}).call<int()>("never");
  });
  const auto result = outcome(pair.a.peer("b").with({.timeout = outer}).call<int()>("ask"));
  const bool at_its_end = outer - inner <= 10ms;
  CHECK(result.code() == (at_its_end ? ErrorCode::timed_out : ErrorCode::remote_error));
}

TEST_CASE("work that outlives its call is bound by it no longer") {
  VirtualWorld world;
  const Node a = world.root("a");
  const Node b = world.join("b");
  int heard = 0;
  a.expose("hear", [&] { ++heard; });
  const auto background = [&]() -> Future<void> {
    for (int i = 0; i < 5; ++i) {
      co_await after(world, 1s);
      co_await b.call<void()>("a", "hear");
    }
  };
  std::optional<Future<void>> running;
  b.expose("start", [&] { running = background(); });
  a.peer("b").with({.timeout = 1500ms}).call<void()>("start").get();
  world.run_for(10s);
  CHECK(heard == 5);
  CHECK(running.value().ready());
}

TEST_CASE("a call whose time ran out while it waited for a lock never starts, and says so") {
  VirtualWorld world;
  const Node a = world.root("a");
  const Node b = world.join("b");
  const auto mutex = std::make_shared<AsyncMutex>();
  int ran = 0;
  b.expose("f", [&] { ++ran; }, {.exclusive = mutex});
  auto guard = mutex->lock().get();
  auto late = a.peer("b").with({.timeout = 100ms}).call<void()>("f");
  auto in_time = a.call<void()>("b", "f");
  world.run_for(1s);
  CHECK(outcome(std::move(late)).code() == ErrorCode::timed_out);
  guard.unlock();
  in_time.get();
  CHECK(ran == 1);
}

TEST_CASE("a call whose time ran out before its function was exposed never starts") {
  VirtualWorld world;
  const Node a = world.root("a");
  auto options = world.joining("b");
  options.expose_within = 1h;
  const Node b(options);
  int ran = 0;
  auto late = a.peer("b").with({.timeout = 100ms}).call<void()>("f");
  auto in_time = a.call<void()>("b", "f");
  world.run_for(1s);
  b.expose("f", [&] { ++ran; });
  in_time.get();
  CHECK(outcome(std::move(late)).code() == ErrorCode::timed_out);
  CHECK(ran == 1);
}

TEST_CASE("promise 3: of 10^4 calls over three hops, none starts when its time is over") {
  constexpr int kCalls = 10'000;
  VirtualWorld world(3);
  world.network->set_link({.latency = 1ms, .jitter = 4ms});
  const Node a = world.root("a");
  const Node b = world.join("b");
  const Node c = world.join("c");
  const Node d = world.join("d");
  std::mt19937_64 random(3);
  int starts[3] = {};
  int expired = 0;
  int gained = 0;
  int not_sent = 0;
  const auto begin = [&](int hop, Duration of_caller) {
    const Duration left = CallContext::current()->time_left().value();
    ++starts[hop];
    expired += left <= Duration::zero() ? 1 : 0;
    gained += left > of_caller + 1us ? 1 : 0;  // it travels in whole microseconds
  };
  const auto pause = [&] { return after(world, std::chrono::microseconds(random() % 1800)); };
  const auto relay = [&](const Node& node, const char* to, int hop,
                         Duration of_caller) -> Future<void> {
    begin(hop, of_caller);
    co_await pause();
    const Duration left = CallContext::current()->time_left().value();
    auto call = node.call<void(std::int64_t)>(to, "hop", left.count());
    if (call.ready()) ++not_sent;
    co_await std::move(call);
  };
  // Each has a queue, which fills and empties.
  b.expose("hop", [&](std::int64_t left) { return relay(b, "c", 0, Duration(left)); },
           {.exclusive = std::make_shared<AsyncMutex>()});
  c.expose("hop", [&](std::int64_t left) { return relay(c, "d", 1, Duration(left)); });
  d.expose("hop",
           [&](std::int64_t left) {
             begin(2, Duration(left));
             return pause();
           },
           {.exclusive = std::make_shared<AsyncMutex>()});
  int answered = 0;
  int timed_out = 0;
  int others = 0;
  for (int i = 0; i < kCalls; ++i) {
    const auto timeout = std::chrono::microseconds(2000 + random() % 60'000);
    a.peer("b")
        .with({.timeout = timeout})
        .call<void(std::int64_t)>("hop", Duration(timeout).count())
        .then([&](const Result<void>& result) {
          const bool late = !result && (result.code() == ErrorCode::timed_out ||
                                        result.message().find("TimedOut") != std::string::npos);
          ++(result ? answered : late ? timed_out : others);
        });
    world.run_for(std::chrono::microseconds(random() % 14'000));
  }
  world.run_for(1min);
  WARN(kCalls << " calls: " << answered << " answered, " << timed_out << " timed out; starts "
              << starts[0] << ", " << starts[1] << ", " << starts[2] << "; " << not_sent
              << " of an expired call's calls not sent; starts of what was expired: " << expired);
  CHECK(expired == 0);
  CHECK(gained == 0);
  CHECK(others == 0);
  CHECK(answered + timed_out == kCalls);
  CHECK(answered > kCalls / 10);
  CHECK(timed_out > kCalls / 10);
  CHECK(not_sent > 0);
}

}  // namespace deadlines_test
}  // namespace batchrpc
