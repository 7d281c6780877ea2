#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"

namespace batchrpc::env {

/// A condition that one caller waits for. It is guarded by the mutex of the state it depends on.
/// Nobody holds that mutex while the caller waits or is woken. Not thread-safe.
class AwaitedCondition {
 public:
  /// The future is ready when the promise from take_if_true() is kept. Lasts until end().
  [[nodiscard]] Future<void> await(std::function<bool()> condition) {
    condition_ = std::move(condition);
    return waiter_.emplace().get_future();
  }
  void end() noexcept { waiter_.reset(); }

  /// If a caller waits and the condition is true, returns the promise that wakes it, once.
  [[nodiscard]] std::optional<Promise<void>> take_if_true() {
    if (!waiter_ || !condition_()) return std::nullopt;
    return std::exchange(waiter_, std::nullopt);
  }

 private:
  std::optional<Promise<void>> waiter_;
  std::function<bool()> condition_;
};

}  // namespace batchrpc::env
