// More calls than a node can run: promise 7 of docs/reliability.md.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/real_nodes.hpp"
#include "node/virtual_world.hpp"

namespace batchrpc {
namespace {

using namespace std::chrono_literals;
using test::may_have_run;
using test::outcome;
using test::VirtualWorld;

constexpr int kProcessors = 4;
constexpr Duration kWork = 40ms;   // of a call, in the mean
constexpr double kCapacity = 100;  // calls a second
constexpr Duration kTimeout = 800ms;

/// Processors in virtual time: each does one piece of work at a time, those beyond wait in order.
class Processors {
 public:
  explicit Processors(std::shared_ptr<VirtualLoop> loop) : loop_(std::move(loop)) {}

  Future<int> work(Duration time) {
    if (const CallContext* call = CallContext::current()) {
      if (call->time_left().value_or(1s) == Duration::zero()) ++expired;
    }
    Job job{.time = time, .done = {}};
    auto done = job.done.get_future();
    waiting_.push_back(std::move(job));
    begin();
    return done;
  }

  int expired = 0;  ///< work that began when its caller had given up
  int most = 0;     ///< pieces of work that waited or were done, at once

 private:
  struct Job {
    Duration time;
    Promise<int> done;
  };

  void begin() {
    most = std::max(most, busy_ + static_cast<int>(waiting_.size()));
    while (busy_ < kProcessors && !waiting_.empty()) {
      Job job = std::move(waiting_.front());
      waiting_.pop_front();
      ++busy_;
      loop_->schedule(loop_->now() + job.time, [this, done = std::move(job.done)]() mutable {
        --busy_;
        begin();
        done.set_value(1);
      });
    }
  }

  const std::shared_ptr<VirtualLoop> loop_;
  std::deque<Job> waiting_;
  int busy_ = 0;
};

/// What became of calls.
struct Tally {
  int offered = 0;
  int answered = 0;
  int refused = 0;
  int timed_out = 0;
  int other = 0;
  Duration slowest_refusal{};
  std::vector<std::chrono::nanoseconds> pauses;  // retry_after of those refused
};

/// A server with processors, and clients whose calls come whether others were answered or not.
struct Server {
  explicit Server(const CallLimits& limits, std::uint64_t seed = 7) : world(seed), random(seed) {
    world.network->set_link({.latency = 1ms});
    NodeOptions options = world.options("server");
    options.call_limits = limits;
    node.emplace(std::move(options));
    node->expose("work", [this] { return processors.work(time_of_work()); });
  }

  Duration time_of_work() {
    if (!random_work) return kWork;
    std::exponential_distribution<double> factor(1.0);
    return std::chrono::duration_cast<Duration>(kWork * factor(random));
  }

  void call(const Node& client, Tally& tally, Duration timeout) {
    ++tally.offered;
    client.call_with<int()>({.timeout = timeout}, "server", "work")
        .then([this, &tally, begin = world.time()](const Result<int>& result) {
          if (result) {
            ++tally.answered;
          } else if (result.code() == ErrorCode::overloaded) {
            ++tally.refused;
            tally.slowest_refusal = std::max(tally.slowest_refusal, world.time() - begin);
            try {
              std::rethrow_exception(result.error());
            } catch (const Overloaded& error) {
              tally.pauses.push_back(error.retry_after());
              if (error.may_have_run()) ++tally.other;
            }
          } else if (result.code() == ErrorCode::timed_out) {
            ++tally.timed_out;
          } else {
            ++tally.other;
          }
        });
  }

  /// Calls of `client` for a while, so many a second; the time-out of each is drawn.
  void load(const Node& client, Tally& tally, double rate, Duration time,
            std::vector<Duration> timeouts = {kTimeout}) {
    const Duration end = world.time() + time;
    auto next = std::make_shared<std::function<void()>>();
    *next = [=, this, &client, &tally, weak = std::weak_ptr(next)] {
      if (world.time() >= end) return;
      call(client, tally, timeouts[random() % timeouts.size()]);
      std::exponential_distribution<double> gap(rate);
      world.loop->schedule(world.loop->now() + std::chrono::duration_cast<Duration>(
                                                   std::chrono::duration<double>(gap(random))),
                           [next = weak.lock()] { (*next)(); });
    };
    (*next)();
  }

  VirtualWorld world;
  std::mt19937_64 random;
  bool random_work = false;
  Processors processors{world.loop};
  std::optional<Node> node;
};

constexpr double kSeconds = 30;
double goodput(const Tally& tally) { return tally.answered / (kCapacity * kSeconds); }

TEST_CASE("promise 7: at five times the capacity for 30 s goodput stays at 90 % and more") {
  const auto order = GENERATE(QueueOrder::fifo, QueueOrder::earliest_deadline);
  const bool random_work = GENERATE(false, true);
  const bool mixed = GENERATE(false, true);
  Server server({.accepted = 1000, .running = kProcessors, .order = order});
  server.random_work = random_work;
  const Node client = server.world.join("client");
  Tally tally;
  server.load(
      client, tally, 5 * kCapacity, 30s,
      mixed ? std::vector<Duration>{400ms, 800ms, 1600ms} : std::vector<Duration>{kTimeout});
  server.world.run_for(33s);
  INFO((order == QueueOrder::fifo ? "fifo" : "earliest deadline")
       << (random_work ? ", random work" : "") << (mixed ? ", mixed time-outs" : "") << ": goodput "
       << goodput(tally) << " of the capacity, of " << tally.offered << " calls " << tally.answered
       << " answered, " << tally.refused << " refused, " << tally.timed_out << " timed out");
  CHECK(goodput(tally) >= 0.9);
  CHECK(tally.offered > 4.5 * kCapacity * kSeconds);
  CHECK(tally.answered + tally.refused + tally.timed_out == tally.offered);
  CHECK(tally.timed_out < tally.offered / 50);  // the others are told at once
  CHECK(tally.slowest_refusal <= 2ms);          // a round trip
  CHECK(server.processors.expired == 0);
  CHECK(server.processors.most == kProcessors);
}

TEST_CASE("promise 7: the same load without limits collapses, so the limits are what helps") {
  Server server({});
  const Node client = server.world.join("client");
  Tally tally;
  server.load(client, tally, 5 * kCapacity, 30s);
  server.world.run_for(33s);
  CHECK(goodput(tally) < 0.1);
  CHECK(server.processors.most > 1000);
  server.world.run_for(150s);  // what waits is done all the same
}

TEST_CASE("promise 7: below the capacity nothing is refused, and after a burst all is as before") {
  Server server({.accepted = 64, .running = kProcessors});
  const Node client = server.world.join("client");
  Tally before;
  server.load(client, before, 0.5 * kCapacity, 10s);
  server.world.run_for(11s);
  CHECK(before.answered == before.offered);
  Tally burst;
  server.load(client, burst, 20 * kCapacity, 2s);
  server.world.run_for(4s);
  CHECK(burst.refused > 0);
  Tally after;
  server.load(client, after, 0.5 * kCapacity, 10s);
  server.world.run_for(11s);
  CHECK(after.answered == after.offered);
}

TEST_CASE("promise 7: the limits of each peer keep the others served") {
  const auto order = GENERATE(QueueOrder::fifo, QueueOrder::earliest_deadline);
  Server server({.accepted = 200,
                 .accepted_per_peer = 100,
                 .running = kProcessors,
                 .running_per_peer = kProcessors - 1,
                 .order = order});
  const Node greedy = server.world.join("greedy");
  const Node modest = server.world.join("modest");
  Tally much;
  Tally little;
  server.load(greedy, much, 5 * kCapacity, 30s);
  server.load(modest, little, 0.15 * kCapacity, 30s);  // a processor does .25
  server.world.run_for(33s);
  CHECK(little.answered >= 0.95 * little.offered);
  CHECK((much.answered + little.answered) / (kCapacity * kSeconds) >= 0.8);
  CHECK(much.refused > 0);
}

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
                                    Catch::Contains("2 calls wait or run") &&
                                    Catch::Contains("NodeOptions::call_limits.accepted"));
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
    late.push_back(client.call_with<int()>({.timeout = 30ms}, "server", "work"));
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
    calls.push_back(client.call_with<int()>({.timeout = kTimeout}, "server", "warms up"));
  for (auto& call : calls)
    CHECK(call.get() == 1);
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
    return client.call_with<int(std::string)>({.timeout = timeout}, "server", "named", name);
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

TEST_CASE("no more handlers run at once than a node's limits say, on however many workers") {
  NodeOptions options = test::real_root("a", 8);
  options.call_limits = {.accepted = 10'000, .running = 3, .running_per_peer = 2};
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
    calls.push_back(b.call_with<int()>(patient, "a", "count"));
    calls.push_back(a.call_with<int()>(patient, "a", "count"));
  }
  for (auto& call : calls)
    CHECK(call.get() == 1);
  CHECK(most <= 3);
}

}  // namespace
}  // namespace batchrpc
