#pragma once

#include <chrono>
#include <thread>

namespace batchrpc::test {

/// Waits in real time until `condition()` is true. False: it was not within `limit`.
template <class Condition>
bool becomes_true(Condition condition, std::chrono::seconds limit = std::chrono::seconds(60)) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace batchrpc::test
