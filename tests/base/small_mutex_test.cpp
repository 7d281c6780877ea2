#include <catch2/catch.hpp>
#include <mutex>
#include <thread>
#include <vector>

#include "batchrpc/base/small_mutex.hpp"

namespace batchrpc::detail {
namespace small_mutex_test {

TEST_CASE("a small mutex is had by one thread at a time, and wakes those that wait", "[threads]") {
  constexpr int kThreads = 4;
  constexpr int kTimes = 20'000;
  SmallMutex mutex;
  int count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < kTimes; ++j) {
        const std::lock_guard lock(mutex);
        ++count;
        if (j % 1000 == 0) std::this_thread::yield();  // with the lock, so that others wait
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  CHECK(count == kThreads * kTimes);
  static_assert(sizeof(SmallMutex) == 4);
}

}  // namespace small_mutex_test
}  // namespace batchrpc::detail
