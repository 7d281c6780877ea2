#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <atomic>
#include <memory>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "transport/asio_core.hpp"
#include "transport/nested_wait.hpp"

namespace batchrpc::detail {

/// A loop on the io_context of the program that embeds it; driven by the threads that run that
/// context.
class EmbeddedCore final : public AsioCore {
 public:
  explicit EmbeddedCore(asio::io_context& io)
      : io_(io), timers_(std::make_shared<AsioTimers>(io)) {}

  [[nodiscard]] asio::io_context& io() noexcept override { return io_; }
  [[nodiscard]] AsioTimers& timers() noexcept override { return *timers_; }

  void stop() override {
    stopped_ = true;
    timers_->stop();
  }

  void wait(Waiter& waiter, const std::optional<TimePoint>& deadline) override;

  void post(Task task) override {
    if (stopped_) return;
    // Weak: the context may run this after the loop is gone.
    asio::post(io_, [weak = weak_from_this(), task = std::move(task)]() mutable {
      const auto self = std::static_pointer_cast<EmbeddedCore>(weak.lock());
      if (self && !self->stopped_) task();
    });
  }

  TimerId schedule(TimePoint when, Task task) override {
    return timers_->schedule(when, std::move(task));
  }

  [[nodiscard]] bool is_driving() const noexcept override {
    return io_.get_executor().running_in_this_thread();
  }

  /// Only on the embedder's threads, from within a task: others must not run his context.
  bool poll() override {
    if (!is_driving()) return false;
    timers_->rearm();
    return io_.poll() != 0;
  }

 private:
  asio::io_context& io_;
  std::shared_ptr<AsioTimers> timers_;
  std::atomic<bool> stopped_{false};
};

}  // namespace batchrpc::detail
