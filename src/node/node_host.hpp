#pragma once

#include <memory>
#include <string>

#include "batchrpc/call/host.hpp"
#include "node/node_core.hpp"

namespace batchrpc {

/// The node of a callable that is exposed on it. Does not keep the node alive.
class NodeHost final : public Host {
 public:
  /// `exposed_as` is the callable's name; empty if unknown. `exclusive` is its lock, or null.
  NodeHost(NodeCore& core, std::string exposed_as, std::shared_ptr<AsyncMutex> exclusive);

  [[nodiscard]] const std::string& name() const noexcept override { return name_; }
  [[nodiscard]] const std::shared_ptr<Executor>& workers() const noexcept override {
    return workers_;
  }
  [[nodiscard]] const std::shared_ptr<Executor>& loop_tasks() const noexcept override {
    return loop_tasks_;
  }
  [[nodiscard]] const std::shared_ptr<Loop>& loop() const noexcept override { return loop_; }
  [[nodiscard]] Duration dead_after() const noexcept override { return dead_after_; }
  [[nodiscard]] const std::string& exposed_as() const noexcept override { return exposed_as_; }
  [[nodiscard]] const std::shared_ptr<AsyncMutex>& exclusive() const noexcept override {
    return exclusive_;
  }
  [[nodiscard]] bool is_live(std::string_view peer) const override;
  [[nodiscard]] bool is_current(const PeerIdentity& peer) const override;
  [[nodiscard]] bool may_be_peer(std::string_view peer) const override;
  std::uint64_t on_change(std::function<void()> handler) override;
  std::uint64_t on_end(std::function<void()> handler) override;
  void forget(std::uint64_t number) override;
  std::uint64_t on_metrics(BatcherStatistics statistics) override;
  void forget_metrics(std::uint64_t number, BatcherMetrics last) override;

 private:
  const std::weak_ptr<NodeCore> core_;
  const std::string name_;
  const std::string exposed_as_;
  const std::shared_ptr<AsyncMutex> exclusive_;
  const std::shared_ptr<Executor> workers_;
  const std::shared_ptr<Executor> loop_tasks_;
  const std::shared_ptr<Loop> loop_;
  const Duration dead_after_;
};

}  // namespace batchrpc
