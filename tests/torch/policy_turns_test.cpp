#include "torch/policy_turns.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <mutex>
#include <thread>
#include <vector>

namespace batchrpc {
namespace policy_turns_test {

// In bursts: what misses its turn has nobody to wake it later.
TEST_CASE("so many have their turn at once, and all have one", "[policy]") {
  constexpr int kAtOnce = 2;
  detail::PolicyTurns turns(kAtOnce);
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  std::atomic<int> had{0};
  constexpr int kBursts = 300;
  for (int burst = 0; burst < kBursts; ++burst) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 5; ++i) {
      threads.emplace_back([&] {
        for (int turn = 0; turn < 2; ++turn) {
          const std::lock_guard lock(turns);
          const int now = ++inside;
          for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
          }
          std::this_thread::yield();
          --inside;
          ++had;
        }
      });
    }
    for (std::thread& thread : threads)
      thread.join();
  }
  CHECK(had == kBursts * 10);
  CHECK(most <= kAtOnce);
}

}  // namespace policy_turns_test
}  // namespace batchrpc
