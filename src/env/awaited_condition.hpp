#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"

namespace batchrpc::env {

/// What one caller waits for to become true. Guarded by the mutex that guards what it is about,
/// which nobody holds while he waits, or is woken. Not thread-safe.
class AwaitedCondition {
 public:
  /// Ready when take_if_true() has given its promise out, and that is kept; until end().
  [[nodiscard]] Future<void> await(std::function<bool()> condition) {
    condition_ = std::move(condition);
    return waiter_.emplace().get_future();
  }
  void end() noexcept { waiter_.reset(); }

  /// What wakes the caller, if there is one, and the condition is true: once.
  [[nodiscard]] std::optional<Promise<void>> take_if_true() {
    if (!waiter_ || !condition_()) return std::nullopt;
    return std::exchange(waiter_, std::nullopt);
  }

 private:
  std::optional<Promise<void>> waiter_;
  std::function<bool()> condition_;
};

}  // namespace batchrpc::env
