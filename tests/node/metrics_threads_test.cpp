#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/real_nodes.hpp"

namespace metrics_threads {
int half(int x) {
  if (x % 10 == 9) throw std::runtime_error("not this one");
  return x / 2;
}
}  // namespace metrics_threads

namespace batchrpc {
namespace metrics_threads_test {

using test::outcome;
using test::RealPair;

TEST_CASE("metrics are taken while threads call, and each call is counted once on both sides",
          "[threads]") {
  constexpr int kThreads = 3;
  constexpr int kCalls = 500;
  RealPair pair(3);
  pair.b.expose<&metrics_threads::half>();
  std::atomic<int> done{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kCalls; ++i)
        (void)outcome(pair.a.call<&metrics_threads::half>("b", i));
      ++done;
    });
  }
  std::uint64_t before = 0;
  while (done < kThreads) {
    for (const Node* node : {&pair.a, &pair.b}) {
      const NodeMetrics metrics = node->metrics();
      for (const CallMetrics* calls : {&metrics.made, &metrics.answered})
        CHECK(calls->calls == calls->ok + calls->errors.total() + calls->in_flight);
      CHECK_FALSE(to_json(metrics).empty());
    }
    const std::uint64_t ok = pair.a.metrics().made.ok;
    CHECK(ok >= before);
    before = ok;
  }
  for (std::thread& thread : threads)
    thread.join();
  // Who has answered counts that behind the answer.
  const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (pair.b.metrics().answered.in_flight > 0 && std::chrono::steady_clock::now() < late)
    std::this_thread::yield();
  const NodeMetrics a = pair.a.metrics();
  const NodeMetrics b = pair.b.metrics();
  CHECK(a.made.in_flight == 0);
  CHECK(b.answered.in_flight == 0);
  for (const auto& [metrics, made] : {std::pair(&a, true), std::pair(&b, false)}) {
    bool found = false;
    for (const FunctionMetrics& function : metrics->functions) {
      if (function.name != "metrics_threads::half") continue;
      found = true;
      const CallMetrics& calls = made ? function.made : function.answered;
      CHECK(calls.calls == kThreads * kCalls);
      CHECK(calls.ok == kThreads * kCalls * 9 / 10);
      CHECK(calls.errors.of(ErrorCode::remote_error) == kThreads * kCalls / 10);
      CHECK(calls.latency.quantile(1) < 60'000'000'000);
      CHECK(calls.latency.quantile(0) > 0);
    }
    CHECK(found);
  }
}

}  // namespace metrics_threads_test
}  // namespace batchrpc
