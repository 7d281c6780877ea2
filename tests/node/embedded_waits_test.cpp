#include <asio/post.hpp>
#include <atomic>
#include <catch2/catch.hpp>
#include <latch>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/real_nodes.hpp"
#include "node/runners.hpp"

// What a thread runs while it waits within a task: on the context of an embedder, and elsewhere.

namespace batchrpc {
namespace embedded_waits_test {

using namespace std::chrono_literals;
using test::node_on;
using test::outcome;
using test::Runners;

constexpr CallOptions kSoon{.timeout = 10s};

int add(int a, int b) { return a + b; }

/// Pings would take along what waits to be sent.
NodeOptions without_pings(NodeOptions options) {
  options.liveness.dead_after = 60s;
  options.liveness.ping_after = 30s;
  return options;
}

TEST_CASE("what runs on top of a waiting handler sends for itself, and has no part in its call",
          "[threads]") {
  Runners runners(1);
  const Node a = node_on(runners, without_pings(test::real_root("a")));
  const Node b(without_pings(test::real_joining(a, "b")));
  b.expose("add", &add);
  bool in_a_call = true;
  const bool is_short = GENERATE(false, true);
  a.expose(
      "wait",
      [&] {
        Promise<int> promise;
        auto sum = promise.get_future();
        asio::post(runners.context, [&] {
          in_a_call = CallContext::current() != nullptr;
          a.peer("b").with(kSoon).call<int(int, int)>("add", 1, 2).then([&](Result<int> result) {
            promise.set_result(std::move(result));
          });
        });
        const int result = std::move(sum).get();
        return CallContext::current() != nullptr ? result : -1;
      },
      {.short_handler = is_short});
  CHECK(b.call<int()>("a", "wait").get() == 3);
  CHECK_FALSE(in_a_call);
}

TEST_CASE("so does a time-out's callback, on a node with threads of its own", "[threads]") {
  std::vector<Promise<void>> never;
  const Node a(without_pings(test::real_root("a")));
  const Node b(without_pings(test::real_joining(a, "b")));
  b.expose("add", &add);
  b.expose("never",
           [&] {
             never.emplace_back();
             return never.back().get_future();
           },
           {.short_handler = true});
  a.expose("wait",
           [&] {
             Promise<int> promise;
             auto sum = promise.get_future();
             a.peer("b")
                 .with({.timeout = 20ms})
                 .call<void()>("never")
                 .on_error([&](const std::exception_ptr&) {
                   a.peer("b")
                       .with(kSoon)
                       .call<int(int, int)>("add", 1, 2)
                       .then([&](Result<int> result) { promise.set_result(std::move(result)); });
                 });
             return std::move(sum).get();
           },
           {.short_handler = true});
  CHECK(b.call<int()>("a", "wait").get() == 3);
}

TEST_CASE("a burst of calls whose handlers wait is answered, however many", "[threads]") {
  constexpr std::size_t kCalls = 600;
  Runners runners(GENERATE(1, 3));
  const Node a = node_on(runners, test::real_root("a"));
  const Node b(test::real_joining(a, "b"));
  std::mutex mutex;
  std::vector<Promise<int>> gates;
  bool open = false;
  b.expose("gate", [&] {
    const std::lock_guard lock(mutex);
    if (open) return make_ready_future(1);
    gates.emplace_back();
    return gates.back().get_future();
  });
  a.expose("relay", [&a] { return a.call<int()>("b", "gate").get(); });
  std::vector<Future<int>> answers;
  for (std::size_t i = 0; i < kCalls; ++i)
    answers.push_back(b.call<int()>("a", "relay"));
  const auto at_the_gate = [&] {
    const std::lock_guard lock(mutex);
    return gates.size();
  };
  while (at_the_gate() < 100)
    std::this_thread::sleep_for(1ms);
  CHECK(at_the_gate() < kCalls);  // on one thread's stack
  std::vector<Promise<int>> waiting;
  {
    const std::lock_guard lock(mutex);
    open = true;
    waiting.swap(gates);
  }
  for (auto& promise : waiting)
    promise.set_value(1);
  int sum = 0;
  for (auto& answer : answers)
    sum += std::move(answer).get();
  CHECK(sum == kCalls);
}

TEST_CASE("a callback of one node may wait by another's loop, which asks back", "[threads]") {
  Runners runners(2);
  std::vector<Promise<void>> never;
  const Node a = node_on(runners, test::real_root("a"));
  const Node b(test::real_joining(a, "b"));
  a.expose("add", &add, {.short_handler = true});
  b.expose("add", &add, {.short_handler = true});
  b.expose("never", [&] {
    never.emplace_back();
    return never.back().get_future();
  });
  const auto ask = [](const Node& node, const char* peer) {
    return node.peer(peer).with(kSoon).call<int(int, int)>("add", 1, 2).get();
  };
  SECTION("from the embedder's context to a node of its own threads") {
    CHECK(a.peer("b")
              .with({.timeout = 20ms})
              .call<void()>("never")
              .then([&](const Result<void>& result) { return result ? 0 : ask(b, "a"); })
              .get() == 3);
  }
  SECTION("the other way round") {
    CHECK(ask(b, "a") == 3);
    for (int i = 0; i < 20; ++i) {
      CHECK(b.call<int(int, int)>("a", "add", 3, 4)
                .then([&](int /*sum*/) { return ask(a, "b"); })
                .get() == 3);
    }
  }
}

TEST_CASE("what other tasks of the context throw does not keep a node from ending", "[threads]") {
  Runners runners(1);
  std::vector<Promise<int>> never;
  std::optional<Node> a(node_on(runners, test::real_root("a")));
  const Node b(test::real_joining(*a, "b"));
  b.expose("never", [&] {
    never.emplace_back();
    return never.back().get_future();
  });
  auto pending = a->call<int()>("b", "never");
  std::latch ended(1);
  const bool by_shutdown = GENERATE(true, false);
  asio::post(runners.context, [&] {
    asio::post(runners.context, [] { throw Overloaded("of the program's own"); });
    if (by_shutdown) {
      a->shutdown(50ms);
    } else {
      a.reset();
    }
    ended.count_down();
  });
  ended.wait();
  CHECK(outcome(std::move(pending)).code() == ErrorCode::shut_down);
  while (runners.thrown == 0)
    std::this_thread::sleep_for(1ms);
  CHECK(runners.thrown == 1);
}

TEST_CASE("nor from waiting for a handler on another thread of the context", "[threads]") {
  Runners runners(2);
  Node a = node_on(runners, test::real_root("a"));
  const Node b(test::real_joining(a, "b"));
  std::latch running(1);
  std::latch ended(1);
  std::atomic<bool> left{false};
  a.expose("work", [&] {
    running.count_down();
    std::this_thread::sleep_for(50ms);
    left = true;
  });
  b.peer("a").notify<void()>("work");
  running.wait();
  asio::post(runners.context, [&] {
    asio::post(runners.context, [] { throw std::runtime_error("of the program's own"); });
    a.shutdown(10s);
    CHECK(left);
    ended.count_down();
  });
  ended.wait();
}

TEST_CASE("a callback of one node may end another, of whose callbacks one waits for the first",
          "[threads]") {
  Runners runners(1);
  const bool is_embedded = GENERATE(true, false);
  const Node a = is_embedded ? node_on(runners, test::real_root("a")) : Node(test::real_root("a"));
  std::optional<Node> b(test::real_joining(a, "b"));
  a.expose("add", &add);
  std::latch in_b(1);
  std::atomic<int> sum{0};
  b->call<int(int, int)>("a", "add", 1, 2).then([&](int /*sum*/) {
    in_b.count_down();
    std::this_thread::sleep_for(20ms);
    const auto result = outcome(a.peer("a").with(kSoon).call<int(int, int)>("add", 3, 4));
    sum = result ? *result : -1;
  });
  in_b.wait();
  a.call<int(int, int)>("a", "add", 1, 2).then([&](int /*sum*/) { b.reset(); }).get();
  CHECK(sum == 7);
}

TEST_CASE("what runs on top of a waiting handler does not shut its node down", "[threads]") {
  Runners runners(1);
  Node a = node_on(runners, test::real_root("a"));
  const Node b(test::real_joining(a, "b"));
  b.expose("add", &add);
  const bool is_short = GENERATE(false, true);
  a.expose("wait",
           [&] {
             return a.call<int(int, int)>("b", "add", 1, 2)
                 .then([&](int /*sum*/) {
                   try {
                     a.shutdown(1s);
                   } catch (const InvalidArgument&) {
                     return true;
                   }
                   return false;
                 })
                 .get();
           },
           {.short_handler = is_short});
  CHECK(b.call<bool()>("a", "wait").get());
}

}  // namespace embedded_waits_test
}  // namespace batchrpc
