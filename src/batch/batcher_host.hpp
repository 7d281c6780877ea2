#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "batchrpc/batch/batch_options.hpp"
#include "batchrpc/batch/batch_row.hpp"
#include "batchrpc/call/host.hpp"

namespace batchrpc::detail {

/// Where a batcher runs: on the node that it was exposed on first, or, of a row that came before,
/// on a thread of its own. What it gives stays the same once there is a host. Not thread-safe.
class BatcherHost {
 public:
  /// What a node calls back.
  struct Callbacks {
    std::function<void()> on_change;  ///< after any change of its group
    std::function<void()> on_end;
  };

  BatcherHost() = default;
  BatcherHost(const BatcherHost&) = delete;
  BatcherHost& operator=(const BatcherHost&) = delete;

  /// Throws InvalidArgument for options that do not go with this host; then nothing has changed.
  void adopt(const std::shared_ptr<Host>& host, const BatchOptions& options, Callbacks callbacks);
  /// The first node that asks for figures gets them; others none.
  void report_figures(const std::shared_ptr<Host>& host, Host::BatcherFigures figures);
  /// Throws InvalidArgument for a lock that is not the one of the host.
  void require_lock(const Host& host) const;
  /// Nothing is called back any more.
  void forget_callbacks();
  /// The last figures, for the node that asks for them.
  void report_last(const std::function<BatcherMetrics()>& last) const;

  [[nodiscard]] explicit operator bool() const noexcept { return host_ != nullptr; }
  /// Of one that is there:
  /// @{
  [[nodiscard]] const Host& get() const { return *host_; }
  [[nodiscard]] Loop& loop() const { return *host_->loop(); }
  [[nodiscard]] TimePoint now() const { return host_->loop()->now(); }
  [[nodiscard]] Executor& executor() const { return *executor_; }
  [[nodiscard]] const std::shared_ptr<Executor>& shared_executor() const { return executor_; }
  /// Each batch has it while it runs; null: none.
  [[nodiscard]] const std::shared_ptr<AsyncMutex>& exclusive() const { return host_->exclusive(); }
  /// Who of its group lives.
  [[nodiscard]] std::function<bool(std::string_view)> is_live() const {
    return [host = host_](std::string_view peer) { return host->is_live(peer); };
  }
  /// @}
  /// Whether the caller of that call is gone.
  [[nodiscard]] bool has_left(const BatchCall& call) const {
    return call.caller && host_ && !host_->is_current(*call.caller);
  }

 private:
  std::shared_ptr<Host> host_;
  std::shared_ptr<Executor> executor_;
  std::uint64_t change_handler_ = 0;
  std::uint64_t end_handler_ = 0;
  std::shared_ptr<Host> asking_;      // asks for figures; null: nobody does
  std::uint64_t figures_number_ = 0;  // takes them back
};

}  // namespace batchrpc::detail
