#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <vector>

#include "batchrpc/batchrpc.hpp"
#include "node/virtual_world.hpp"

namespace batchrpc::test {

template <class E, class... Args>
std::exception_ptr error(Args... args) {
  return std::make_exception_ptr(E(args...));
}

/// As if the call had failed so before its function began.
[[noreturn]] inline void fail_with(const std::exception_ptr& error) {
  throw detail::DidNotRun{error};
}

/// Of which b exposes "f", whose first attempts fail as told; then it answers how many there were.
struct RetryPair : NodePair {
  std::vector<std::exception_ptr> failures;
  bool always_fails = false;  // with the last of these
  std::vector<TimePoint> attempts;

  RetryPair() {
    b.expose("f", [this] {
      attempts.push_back(world.loop->now());
      const std::size_t number = attempts.size();
      if (number <= failures.size()) fail_with(failures[number - 1]);
      if (always_fails) fail_with(failures.back());
      return static_cast<int>(number);
    });
  }
  [[nodiscard]] Future<int> call(const CallOptions& options) const {
    return a.peer("b").with(options).call<int()>("f");
  }
  /// Between one attempt and the next.
  [[nodiscard]] std::vector<Duration> pauses() const {
    std::vector<Duration> pauses;
    for (std::size_t i = 1; i < attempts.size(); ++i)
      pauses.push_back(attempts[i] - attempts[i - 1]);
    return pauses;
  }
};

}  // namespace batchrpc::test
