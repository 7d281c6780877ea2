#pragma once

#include <exception>
#include <memory>
#include <utility>

#include "batchrpc/future/wait.hpp"
#include "transport/nested_wait.hpp"

namespace batchrpc {

/// Waits by another context while a node ends. An embedder's context may run other tasks meanwhile.
/// If one of them throws, the wait continues. A wait that would be nested too deep returns at once.
/// Used by one thread at a time.
class EnduringWait final : public WaitContext {
 public:
  explicit EnduringWait(std::shared_ptr<WaitContext> context) : context_(std::move(context)) {}

  void wait(Waiter& waiter, const std::optional<TimePoint>& deadline) override {
    while (!waiter.ready() && !(deadline && now() >= *deadline)) {
      try {
        context_->wait(waiter, deadline);
      } catch (const detail::NestedTooDeep&) {
        return;
      } catch (...) {
        if (!thrown_) thrown_ = std::current_exception();
      }
    }
  }
  [[nodiscard]] TimePoint now() const noexcept override { return context_->now(); }

  /// Returns the first exception that was thrown; null if there was none.
  [[nodiscard]] const std::exception_ptr& thrown() const noexcept { return thrown_; }

 private:
  const std::shared_ptr<WaitContext> context_;
  std::exception_ptr thrown_;
};

}  // namespace batchrpc
