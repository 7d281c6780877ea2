#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/overload_server.hpp"
#include "node/real_nodes.hpp"

// What NodeOptions::limits.calls refuses, and whose turn it is.

namespace batchrpc {
namespace call_limits_test {

using namespace std::chrono_literals;
using test::kProcessors;
using test::kTimeout;
using test::kWork;
using test::may_have_run;
using test::outcome;
using test::Server;
using test::Tally;

TEST_CASE("promise 7: a refused call is told when there may be room, from measured run times") {
  Server server({.accepted = 20, .running = kProcessors});
  const Node client = server.world.join("client");
  Tally first;
  server.call(client, first, 60s);
  server.world.run_for(1s);  // 40 ms are measured
  Tally tally;
  for (int i = 0; i < 25; ++i)
    server.call(client, tally, 60s);
  server.world.run_for(10ms);
  REQUIRE(tally.refused == 5);
  // 16 wait for 4 processors: 160 ms; the half of that.
  for (const auto pause : tally.pauses) {
    CHECK(pause >= 40ms);
    CHECK(pause <= 200ms);
  }
  Tally again;
  server.world.loop->schedule(server.world.loop->now() + tally.pauses.front(),
                              [&] { server.call(client, again, 60s); });
  server.world.run_for(2s);
  CHECK(again.answered == 1);
  CHECK(tally.answered == 20);
}

TEST_CASE("promise 7: a refused call never ran, and is told why") {
  Server server({.accepted = 2, .running = 1});
  const Node client = server.world.join("client");
  auto one = client.call<int()>("server", "work");
  auto two = client.call<int()>("server", "work");
  const auto refused = outcome(client.call<int()>("server", "work"));
  CHECK(refused.code() == ErrorCode::overloaded);
  CHECK_FALSE(may_have_run(refused.error()));
  CHECK_THAT(refused.message(), Catch::Contains("'work'") && Catch::Contains("server") &&
                                    Catch::Contains("2 calls are queued or running") &&
                                    Catch::Contains("NodeOptions::limits.calls.accepted"));
  CHECK(server.world.log.contain("1 call refused for lack of room, the latest 'work' of client"));
  CHECK(one.get() == 1);
  CHECK(two.get() == 1);
}

TEST_CASE("promise 7: a call that waits until its time is over never starts") {
  Server server({.running = 1});
  const Node client = server.world.join("client");
  auto busy = client.call<int()>("server", "work");
  // Nothing is measured yet: all are taken on.
  std::vector<Future<int>> late;
  for (int i = 0; i < 10; ++i)
    late.push_back(client.peer("server").with({.timeout = 30ms}).call<int()>("work"));
  server.world.run_for(1s);
  CHECK(busy.get() == 1);
  for (auto& call : late) {
    REQUIRE(call.ready());
    CHECK(outcome(std::move(call)).code() == ErrorCode::timed_out);
  }
  CHECK(server.processors.expired == 0);
  CHECK(server.processors.most == 1);
  CHECK(client.call<int()>("server", "work").get() == 1);
}

TEST_CASE("promise 7: a first call that finds everything cold makes the limits refuse nobody") {
  Server server({.running = 2});
  Duration work = 2s;
  server.node->expose("warms up",
                      [&] { return server.processors.work(std::exchange(work, 10ms)); });
  const Node client = server.world.join("client");
  for (int i = 0; i < 2; ++i)
    CHECK(client.call<int()>("server", "warms up").get() == 1);
  std::vector<Future<int>> calls;
  for (int i = 0; i < 20; ++i)
    calls.push_back(client.peer("server").with({.timeout = kTimeout}).call<int()>("warms up"));
  for (auto& call : calls)
    CHECK(call.get() == 1);
}

TEST_CASE("promise 7: handlers that end at once with an error do not hide how long others run") {
  Server server({.running = 1});
  int calls = 0;
  server.node->expose("checks", [&]() -> Future<int> {
    if (++calls == 1) throw std::runtime_error("bad input");
    return server.processors.work(100ms);
  });
  const Node client = server.world.join("client");
  const auto call = [&](Duration timeout) {
    return client.peer("server").with({.timeout = timeout}).call<int()>("checks");
  };
  CHECK(outcome(call(10s)).code() == ErrorCode::remote_error);
  for (int i = 0; i < 3; ++i)
    CHECK(call(10s).get() == 1);
  std::vector<Future<int>> waiting;
  for (int i = 0; i < 4; ++i)
    waiting.push_back(call(10s));
  CHECK(outcome(call(300ms)).code() == ErrorCode::overloaded);
}

TEST_CASE("promise 7: what is cancelled just before it runs is not taken for how long calls run") {
  Server server({.running = 1});
  const Node client = server.world.join("client");
  CHECK(client.call<int()>("server", "work").get() == 1);
  for (int i = 0; i < 3; ++i) {
    auto call = client.call<int()>("server", "work");
    server.world.run_for(0s);  // it leaves, and arrives together with
    CHECK(call.cancel());
    server.world.run_for(10ms);
  }
  CHECK(server.processors.most == 1);
  std::vector<Future<int>> calls;
  for (int i = 0; i < 4; ++i)
    calls.push_back(client.call<int()>("server", "work"));
  const auto behind = outcome(client.peer("server").with({.timeout = 100ms}).call<int()>("work"));
  CHECK(behind.code() == ErrorCode::overloaded);
}

TEST_CASE("promise 4: a call that is cancelled while it waits for its turn makes room at once") {
  const auto limits = GENERATE(CallLimits{.accepted = 3, .running = 1},
                               CallLimits{.accepted_per_peer = 3, .running_per_peer = 1});
  Server server(limits);
  const Node client = server.world.join("client");
  const auto call = [&] { return client.call<int()>("server", "work"); };
  std::vector<Future<int>> calls;
  for (int i = 0; i < 3; ++i)
    calls.push_back(call());
  CHECK(outcome(call()).code() == ErrorCode::overloaded);
  CHECK(calls[1].cancel());
  server.world.run_for(5ms);
  CHECK_FALSE(calls[0].ready());
  auto next = call();
  CHECK(next.get() == 1);
  CHECK(calls[2].ready());
  CHECK(server.processors.most == 1);
}

TEST_CASE("promise 7: by earliest deadline, urgent calls pass patient ones, else none does") {
  const auto order = GENERATE(QueueOrder::fifo, QueueOrder::earliest_deadline);
  Server server({.running = 1, .order = order});
  const Node client = server.world.join("client");
  std::string begun;
  server.node->expose("named", [&](const std::string& name) {
    begun += name;
    return server.processors.work(kWork);
  });
  const auto call = [&](const std::string& name, Duration timeout) {
    return client.peer("server").with({.timeout = timeout}).call<int(std::string)>("named", name);
  };
  std::vector<Future<int>> all;
  all.push_back(call("a", 60s));  // this one runs at once
  all.push_back(call("b", 60s));
  all.push_back(call("c", 60s));
  all.push_back(call("d", 2s));
  all.push_back(call("e", 2s));
  all.push_back(call("f", 900ms));
  all.push_back(call("g", Duration::max()));
  server.world.run_for(1s);
  CHECK(begun == (order == QueueOrder::fifo ? "abcdefg" : "afdebcg"));
}

TEST_CASE("short handlers and batchers are not held up by calls that run and wait") {
  Server server({.accepted = 1, .running = 1});
  Batcher<int(int)> batcher({.max_size = 8}, [](std::vector<int> rows) { return rows; });
  server.node->expose("batch", batcher);
  server.node->expose("short", [] { return 2; }, {.short_handler = true});
  const Node client = server.world.join("client");
  auto busy = client.call<int()>("server", "work");
  CHECK(client.call<int()>("server", "short").get() == 2);
  CHECK(client.call<int(int)>("server", "batch", 3).get() == 3);
  CHECK_FALSE(busy.ready());
  CHECK(busy.get() == 1);
}

TEST_CASE("calls that wait for a lock have their places, and run in their turn") {
  Server server({.accepted = 3, .running = 2});
  const Node client = server.world.join("client");
  const auto lock = std::make_shared<AsyncMutex>();
  server.node->expose("alone", [&] { return server.processors.work(kWork); }, {.exclusive = lock});
  std::vector<Future<int>> calls;
  for (int i = 0; i < 4; ++i)
    calls.push_back(client.call<int()>("server", "alone"));
  server.world.run_for(50ms);
  CHECK(calls[0].ready());
  REQUIRE(calls[3].ready());
  CHECK(outcome(std::move(calls[3])).code() == ErrorCode::overloaded);
  server.world.run_for(1s);
  for (int i = 0; i < 3; ++i)
    CHECK(calls[static_cast<std::size_t>(i)].get() == 1);
  CHECK(server.processors.most == 1);
}

TEST_CASE("a node that ends answers the calls that wait for their turn") {
  Server server({.running = 1});
  const Node client = server.world.join("client");
  std::vector<Future<int>> calls;
  for (int i = 0; i < 10; ++i)
    calls.push_back(client.call<int()>("server", "work"));
  server.world.run_for(5ms);
  CHECK_FALSE(server.node->shutdown(100ms).empty());
  server.world.run_for(1s);
  int answered = 0;
  int shut_down = 0;
  for (auto& call : calls) {
    REQUIRE(call.ready());
    const auto result = outcome(std::move(call));
    if (result) ++answered;
    if (!result && result.code() == ErrorCode::shut_down) {
      CHECK_FALSE(may_have_run(result.error()));
      ++shut_down;
    }
  }
  CHECK(answered == 2);   // 40 ms each
  CHECK(shut_down == 7);  // the third one was running
}

TEST_CASE("no more handlers run at once than a node's limits say, on however many workers",
          "[threads]") {
  NodeOptions options = test::real_root("a", 8);
  options.limits.calls = {.accepted = 10'000, .running = 3, .running_per_peer = 2};
  const Node a(options);
  const Node b(test::real_joining(a, "b"));
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  a.expose("count", [&] {
    const int now = ++running;
    int before = most.load();
    while (now > before && !most.compare_exchange_weak(before, now)) {
    }
    std::this_thread::yield();
    --running;
    return 1;
  });
  std::vector<Future<int>> calls;
  // Without deadlines none is refused for what the first ones took on a busy machine.
  const CallOptions patient{.timeout = Duration::max()};
  for (int i = 0; i < 2000; ++i) {
    calls.push_back(b.peer("a").with(patient).call<int()>("count"));
    calls.push_back(a.peer("a").with(patient).call<int()>("count"));
  }
  for (auto& call : calls)
    CHECK(call.get() == 1);
  CHECK(most <= 3);
}

}  // namespace call_limits_test
}  // namespace batchrpc
