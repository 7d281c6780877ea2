#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <latch>
#include <memory>
#include <stop_token>
#include <thread>
#include <utility>

#include "batchrpc/batchrpc.hpp"
#include "long_tests.hpp"
#include "node/real_nodes.hpp"

// Cancellations that race with starts and answers.

namespace batchrpc {
namespace cancelling_threads_test {

using namespace std::chrono_literals;
using test::RealPair;

struct Outcomes {
  std::atomic<int> completed{0};
  std::atomic<int> cancelled{0};
  std::atomic<int> wrong{0};
  void count(const Result<int>& result) {
    if (!result && result.code() != ErrorCode::cancelled) ++wrong;
    if (!result) ++cancelled;
    ++completed;
  }
};

TEST_CASE("promise 4: a call that is cancelled while it starts, runs or is answered ends once",
          "[threads]") {
  const int rounds = test::times(3000, 30'000);
  RealPair pair(2);
  std::atomic<int> ran{0};
  const auto mutex = std::make_shared<AsyncMutex>();
  const auto bump = [&ran] { return ++ran; };
  pair.b.expose("worker", bump);
  pair.b.expose("short", bump, {.short_handler = true});
  pair.b.expose("exclusive", bump, {.exclusive = mutex});
  pair.b.expose("coroutine", [&]() -> Future<int> {
    const CallContext context = *CallContext::current();
    const std::stop_callback stop(context.stop_token(), [&ran] { ++ran; });
    co_return co_await pair.b.call<int()>("b", "worker");
  });
  const char* const functions[] = {"worker", "short", "exclusive", "coroutine"};
  Outcomes outcomes;
  int again = 0;
  std::atomic<int> spent{0};
  for (int i = 0; i < rounds; ++i) {
    std::atomic<int> ends{0};
    const auto call = pair.a.call<int()>("b", functions[i % 4]);
    call.then([&](const Result<int>& result) {
      outcomes.count(result);
      ++ends;
    });
    for (int spin = i * 7919 % 20'000; spin > 0; --spin)
      spent.fetch_add(1, std::memory_order_relaxed);
    call.cancel();
    call.wait();
    while (ends == 0)  // the callback may be running on another thread
      std::this_thread::yield();
    again += ends - 1;
  }
  CHECK(again == 0);
  CHECK(outcomes.wrong == 0);
  CHECK(outcomes.completed == rounds);
  CHECK(pair.a.call<int()>("b", "worker").get() > 0);
  WARN(rounds << " calls, " << outcomes.cancelled << " of them cancelled in time");
}

TEST_CASE("promise 4: a call that waits for a worker never starts", "[threads]") {
  RealPair pair(1);
  std::latch gate(1);  // a wait for a future would run the others
  std::atomic<int> ran{0};
  pair.b.expose("block", [&gate] { gate.wait(); });
  pair.b.expose("f", [&ran](const Bytes& /*bytes*/) { ++ran; });
  pair.b.expose("ping", [] {}, {.short_handler = true});
  auto block = pair.a.call<void()>("b", "block");
  auto call = pair.a.call<void(Bytes)>("b", "f", Bytes::allocate(1000));
  auto other = pair.a.call<void(Bytes)>("b", "f", Bytes());
  pair.a.call<void()>("b", "ping").get();
  CHECK(call.cancel());
  pair.a.call<void()>("b", "ping").get();
  gate.count_down();
  block.get();
  other.get();
  CHECK(ran == 1);
}

TEST_CASE("promise 4: futures that are dropped on one thread while they complete on another",
          "[threads]") {
  const int rounds = test::times(3000, 30'000);
  RealPair pair(2);
  pair.b.expose("f", [] { return 1; });
  for (int i = 0; i < rounds; ++i) {
    auto call = pair.a.peer("b").with({.cancel_when_dropped = true}).call<int()>("f");
    if (i % 3 == 0) call.wait_for(0s);
    if (i % 7 == 0) CHECK(call.get() == 1);
  }
  CHECK(pair.a.call<int()>("b", "f").get() == 1);
}

}  // namespace cancelling_threads_test
}  // namespace batchrpc
