#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <latch>
#include <thread>

#include "batchrpc/batchrpc.hpp"
#include "node/real_nodes.hpp"

// Nodes with threads of their own, over real sockets: what docs/threading.md promises.

namespace threads {
int add(int a, int b) { return a + b; }
}  // namespace threads

namespace batchrpc {
namespace threads_test {

using namespace std::chrono_literals;
using test::outcome;
using test::RealPair;

TEST_CASE("nodes that poll before they sleep call each other", "[threads]") {
  NodeOptions options = test::real_root();
  options.busy_poll = 50us;
  const Node a(options);
  NodeOptions joining = test::real_joining(a, "b");
  joining.busy_poll = 50us;
  const Node b(joining);
  b.expose<&threads::add>();
  for (int i = 0; i < 2000; ++i)
    CHECK(a.call<&threads::add>("b", i, 1).get() == i + 1);
}

TEST_CASE("nodes call each other over each kind of socket", "[threads]") {
  for (const auto choice : {test::Sockets::all, test::Sockets::tcp, test::Sockets::unix_only}) {
    RealPair pair(2, choice);
    pair.a.expose<&threads::add>();
    pair.b.expose<&threads::add>();
    pair.b.expose("echo", [](Bytes bytes) { return bytes; });
    for (int i = 0; i < 100; ++i) {
      CHECK(pair.a.call<&threads::add>("b", i, 1).get() == i + 1);
      CHECK(pair.b.call<&threads::add>("a", i, 1).get() == i + 1);
    }
    Bytes bytes = Bytes::allocate(64 << 20);
    for (std::size_t i = 0; i < bytes.size(); i += 4096)
      bytes.mutable_data()[i] = static_cast<std::byte>(i >> 12);
    CHECK(pair.a.call<Bytes(Bytes)>("b", "echo", bytes).get() == bytes);
  }
}

TEST_CASE("promise 3: a call whose time is over far down ends as TimedOut, by real clocks too",
          "[threads]") {
  const RealPair pair;
  const auto hop = [&](const Node& node, const char* other, int depth) -> Future<int> {
    if (depth == 0) {
      const CallContext context = *CallContext::current();
      co_await context.when_cancelled();
      co_return 0;
    }
    co_return co_await node.call<int(int)>(other, "hop", depth - 1);
  };
  pair.a.expose("hop", [&](int depth) { return hop(pair.a, "b", depth); });
  pair.b.expose("hop", [&](int depth) { return hop(pair.b, "a", depth); });
  std::vector<Future<int>> calls;
  for (int i = 0; i < 50; ++i)
    calls.push_back(pair.a.peer("b").with({.timeout = 1100ms}).call<int(int)>("hop", 1 + i % 8));
  for (auto& call : calls)
    CHECK(outcome(std::move(call)).code() == ErrorCode::timed_out);
}

TEST_CASE("nested calls from node to node and back work 64 deep with one worker each",
          "[threads]") {
  RealPair pair(1);
  std::function<int(const Node&, const char*, int)> descend = [](const Node& node,
                                                                 const char* other, int depth) {
    return depth == 0 ? 0 : 1 + node.call<int(int)>(other, "descend", depth - 1).get();
  };
  pair.a.expose("descend", [&](int depth) { return descend(pair.a, "b", depth); });
  pair.b.expose("descend", [&](int depth) { return descend(pair.b, "a", depth); });
  CHECK(pair.a.call<int(int)>("b", "descend", 64).get() == 64);
  // Several such towers at once.
  std::vector<Future<int>> towers;
  for (int i = 0; i < 4; ++i)
    towers.push_back(pair.a.call<int(int)>("b", "descend", 16));
  for (auto& tower : towers)
    CHECK(tower.get() == 16);
}

TEST_CASE("nested calls work between three nodes, and to oneself", "[threads]") {
  RealPair pair(1);
  const Node c(test::real_joining(pair.a, "c", 1));
  const auto expose = [](const Node& node, const char* next) {
    node.expose("round", [&node, next](int depth) {
      return depth == 0 ? 0 : 1 + node.call<int(int)>(next, "round", depth - 1).get();
    });
    node.expose("self", [&node](int depth) {
      return depth == 0 ? 0 : 1 + node.call<int(int)>(node.name(), "self", depth - 1).get();
    });
  };
  expose(pair.a, "b");
  expose(pair.b, "c");
  expose(c, "a");
  CHECK(pair.a.call<int(int)>("b", "round", 60).get() == 60);
  CHECK(pair.a.call<int(int)>("c", "self", 60).get() == 60);
}

TEST_CASE("short handlers may call others and wait, deep as well", "[threads]") {
  RealPair pair(1);
  const ExposeOptions short_handler{.short_handler = true};
  pair.a.expose(
      "descend",
      [&](int depth) {
        return depth == 0 ? 0 : 1 + pair.a.call<int(int)>("b", "descend", depth - 1).get();
      },
      short_handler);
  pair.b.expose(
      "descend",
      [&](int depth) {
        return depth == 0 ? 0 : 1 + pair.b.call<int(int)>("a", "descend", depth - 1).get();
      },
      short_handler);
  CHECK(pair.a.call<int(int)>("b", "descend", 30).get() == 30);
}

TEST_CASE("what was read behind a call whose short handler waits is handled meanwhile",
          "[threads]") {
  RealPair pair(1);
  pair.b.expose<&threads::add>({.short_handler = true});
  pair.b.expose("waits",
                [&] {
                  // The answer to this comes on the connection whose messages are being read.
                  return pair.b.call<int()>("a", "answer").get();
                },
                {.short_handler = true});
  pair.a.expose("answer", [] { return 5; });
  std::vector<Future<int>> all;
  for (int round = 0; round < 20; ++round) {
    all.clear();
    all.push_back(pair.a.call<int()>("b", "waits"));
    for (int i = 0; i < 50; ++i)
      all.push_back(pair.a.call<&threads::add>("b", i, 1));
    all.push_back(pair.a.call<int()>("b", "waits"));
    CHECK(all.front().get() == 5);
    CHECK(all.back().get() == 5);
    for (int i = 0; i < 50; ++i)
      CHECK(all[static_cast<std::size_t>(i) + 1].get() == i + 1);
  }
}

TEST_CASE("a hundred asynchronous calls are under way at once with one worker", "[threads]") {
  RealPair pair(1);
  std::mutex mutex;
  std::vector<Promise<int>> promises;
  std::latch all(200);
  pair.b.expose("future", [&] {
    const std::lock_guard lock(mutex);
    promises.emplace_back();
    all.count_down();
    return promises.back().get_future();
  });
  pair.b.expose("coroutine", [&]() -> Future<int> {
    Future<int> future = [&] {
      const std::lock_guard lock(mutex);
      promises.emplace_back();
      return promises.back().get_future();
    }();
    all.count_down();
    co_return 1 + co_await std::move(future);
  });
  std::vector<Future<int>> futures;
  for (int i = 0; i < 100; ++i) {
    futures.push_back(pair.a.call<int()>("b", "future"));
    futures.push_back(pair.a.call<int()>("b", "coroutine"));
  }
  all.wait();  // none of them holds the only worker
  pair.b.expose<&threads::add>();
  CHECK(pair.a.call<&threads::add>("b", 1, 2).get() == 3);
  for (auto& promise : promises)
    promise.set_value(10);
  int sum = 0;
  for (auto& future : futures)
    sum += future.get();
  CHECK(sum == 100 * 10 + 100 * 11);
}

TEST_CASE("handlers run on as many workers as there are, and no more", "[threads]") {
  RealPair pair(3);
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  std::latch three(3);
  pair.b.expose("work", [&](bool together) {
    const int now = ++running;
    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    if (together) three.arrive_and_wait();
    --running;
  });
  std::vector<Future<void>> calls;
  for (int i = 0; i < 3; ++i)
    calls.push_back(pair.a.call<void(bool)>("b", "work", true));
  for (auto& call : calls)
    call.get();
  calls.clear();
  for (int i = 0; i < 100; ++i)
    calls.push_back(pair.a.call<void(bool)>("b", "work", false));
  for (auto& call : calls)
    call.get();
  CHECK(most == 3);
}

TEST_CASE("one worker runs the calls of one peer in the order in which they were made",
          "[threads]") {
  RealPair pair(1);
  std::vector<int> seen;
  pair.b.expose("note", [&seen](int i) { seen.push_back(i); });
  pair.b.expose("count", [&seen] { return seen.size(); });
  for (int i = 0; i < 1000; ++i)
    pair.a.peer("b").notify<void(int)>("note", i);
  CHECK(pair.a.call<std::size_t()>("b", "count").get() == 1000);
  CHECK(std::is_sorted(seen.begin(), seen.end()));
}

TEST_CASE("four threads call, wait and are answered with their own results", "[threads]") {
  RealPair pair(2);
  pair.b.expose<&threads::add>();
  pair.b.expose("short", threads::add, {.short_handler = true});
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int thread = 0; thread < 4; ++thread) {
    callers.emplace_back([&, thread] {
      for (int i = 0; i < 300; ++i) {
        if (pair.a.call<&threads::add>("b", thread, i).get() != thread + i) ++wrong;
        auto first = pair.a.call<int(int, int)>("b", "short", thread, i);
        auto second = pair.a.call<&threads::add>("b", i, i);
        if (second.get() != 2 * i) ++wrong;
        if (first.get() != thread + i) ++wrong;
      }
    });
  }
  for (auto& caller : callers)
    caller.join();
  CHECK(wrong == 0);
}

TEST_CASE("a future can be waited for on another thread than the one that called", "[threads]") {
  RealPair pair(1);
  pair.b.expose<&threads::add>();
  for (int i = 0; i < 50; ++i) {
    auto future = pair.a.call<&threads::add>("b", i, 1);
    int sum = 0;
    std::thread([&] { sum = future.get(); }).join();
    CHECK(sum == i + 1);
  }
}

TEST_CASE("replies to callbacks come without anybody waiting", "[threads]") {
  RealPair pair(1);
  pair.b.expose<&threads::add>();
  std::latch all(100);
  for (int i = 0; i < 100; ++i) {
    pair.a.call<&threads::add>("b", i, 1).then([&all, i](int sum) {
      if (sum == i + 1) all.count_down();
    });
  }
  all.wait();
}

TEST_CASE("a continuation can be sent to the workers", "[threads]") {
  RealPair pair(1);
  pair.b.expose<&threads::add>();
  const auto here = std::this_thread::get_id();
  const auto where = pair.a.call<&threads::add>("b", 1, 2)
                         .then(pair.a.workers(), [](int) { return std::this_thread::get_id(); })
                         .get();
  CHECK(where != here);
}

TEST_CASE("the answer to a ping does not wait for the end of a handler whose output gathers",
          "[threads]") {
  NodeOptions watchful = test::real_root("a");
  watchful.liveness.ping_after = 100ms;
  const Node a(watchful);
  NodeOptions quiet = test::real_joining(a, "b");  // its own pings would take the note along
  quiet.liveness.dead_after = 60s;
  quiet.liveness.ping_after = 30s;
  const Node b(quiet);
  std::promise<void> noted;
  a.expose("note", [&noted] { noted.set_value(); });
  b.expose("work", [&b, arrived = noted.get_future().share()] {
    b.peer("a").notify<void()>("note");  // leaves with the answer to the ping
    return arrived.wait_for(20s) == std::future_status::ready;
  });
  CHECK(a.call<bool()>("b", "work").get());
}

}  // namespace threads_test
}  // namespace batchrpc
