#pragma once

#include <memory>
#include <string>

#include "batch/calling_thread.hpp"
#include "batchrpc/call/host.hpp"
#include "batchrpc/transport/socket_loop.hpp"

namespace batchrpc::detail {

/// The host of a batcher without a node: a loop of its own, and so a thread and a clock. It has no
/// peers, and nothing changes.
class LoneHost final : public Host {
 public:
  [[nodiscard]] const std::string& name() const noexcept override { return no_name_; }
  [[nodiscard]] const std::shared_ptr<Executor>& workers() const noexcept override {
    return workers_;
  }
  [[nodiscard]] const std::shared_ptr<Executor>& loop_tasks() const noexcept override {
    return calling_thread_;
  }
  [[nodiscard]] const std::shared_ptr<Loop>& loop() const noexcept override { return loop_; }
  [[nodiscard]] Duration dead_after() const noexcept override { return Duration::max(); }
  [[nodiscard]] const std::string& exposed_as() const noexcept override { return no_name_; }
  [[nodiscard]] const std::shared_ptr<AsyncMutex>& exclusive() const noexcept override {
    return no_lock_;
  }
  [[nodiscard]] bool is_live(std::string_view /*peer*/) const override { return true; }
  [[nodiscard]] bool is_current(const PeerIdentity& /*peer*/) const override { return true; }
  [[nodiscard]] bool may_be_peer(std::string_view /*peer*/) const override { return true; }
  std::uint64_t on_change(std::function<void()> /*handler*/) override { return 0; }
  std::uint64_t on_end(std::function<void()> /*handler*/) override { return 0; }
  void forget(std::uint64_t /*number*/) override {}
  std::uint64_t on_metrics(BatcherStatistics /*statistics*/) override { return 0; }
  void forget_metrics(std::uint64_t /*number*/, BatcherMetrics /*last*/) override {}

 private:
  const std::string no_name_;
  const std::shared_ptr<AsyncMutex> no_lock_;
  const std::shared_ptr<Loop> loop_ = SocketLoop::start();
  const std::shared_ptr<Executor> workers_ = loop_;
  const std::shared_ptr<Executor> calling_thread_ = std::make_shared<CallingThread>();
};

}  // namespace batchrpc::detail
