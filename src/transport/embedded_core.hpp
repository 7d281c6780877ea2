#pragma once

#include <asio/io_context.hpp>
#include <atomic>
#include <memory>
#include <utility>

#include "transport/asio_core.hpp"

namespace batchrpc::detail {

/// A loop on the io_context of the program that embeds it; driven by the threads that run that
/// context.
class EmbeddedCore final : public AsioCore {
 public:
  explicit EmbeddedCore(asio::io_context& io)
      : io_(io), timers_(std::make_shared<AsioTimers>(io)) {}

  [[nodiscard]] asio::io_context& io() noexcept override { return io_; }
  [[nodiscard]] AsioTimers& timers() noexcept override { return *timers_; }
  void stop() override;
  void wait(Waiter& waiter, const std::optional<TimePoint>& deadline) override;
  void post(Task task) override;
  TimerId schedule(TimePoint when, Task task) override {
    return timers_->schedule(when, std::move(task));
  }
  [[nodiscard]] bool is_driving() const noexcept override {
    return io_.get_executor().running_in_this_thread();
  }
  /// Only within a task: other threads must not run the embedder's context.
  bool poll() override;

 private:
  asio::io_context& io_;
  const std::shared_ptr<AsioTimers> timers_;
  std::atomic<bool> stopped_{false};
};

}  // namespace batchrpc::detail
