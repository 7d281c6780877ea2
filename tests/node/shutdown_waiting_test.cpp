#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/real_nodes.hpp"

namespace batchrpc {
namespace shutdown_waiting_test {

using namespace std::chrono_literals;
using test::may_have_run;
using test::outcome;

TEST_CASE("promise 8: calls that wait for a worker when their node ends never run, and say so",
          "[threads]") {
  struct Shared {  // with a handler that outlives its node
    std::promise<void> release;
    std::shared_future<void> released = release.get_future().share();
    std::atomic<int> begun{0};
    std::atomic<int> ended{0};
  };
  const auto shared = std::make_shared<Shared>();
  const Node a(test::real_root("a"));
  Node b(test::real_joining(a, "b", 1));
  b.expose("stuck", [shared] {
    ++shared->begun;
    shared->released.wait();
    ++shared->ended;
  });
  b.expose("ping", [] {}, {.short_handler = true});
  std::vector<Future<void>> calls;
  constexpr int kCalls = 5000;  // more than a socket takes at once
  for (int i = 0; i < kCalls; ++i)
    calls.push_back(a.call<void()>("b", "stuck"));
  a.call<void()>("b", "ping").get();  // behind them
  while (shared->begun == 0)
    std::this_thread::yield();
  const auto left = b.shutdown(1s);
  REQUIRE_FALSE(left.empty());
  CHECK(left.front() ==
        "5000 calls from a, not yet answered: stuck (5000 calls); 4999 of them have not started");
  int never_ran = 0;
  for (auto& call : calls) {
    const auto result = outcome(std::move(call));
    REQUIRE_FALSE(result);
    if (result.code() != ErrorCode::shut_down) continue;
    CHECK_FALSE(may_have_run(result.error()));
    ++never_ran;
  }
  CHECK(never_ran == kCalls - 1);
  shared->release.set_value();
  while (shared->ended == 0)
    std::this_thread::yield();
  CHECK(shared->begun == 1);
}

}  // namespace shutdown_waiting_test
}  // namespace batchrpc
