#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "batchrpc/batch/batch_options.hpp"
#include "batchrpc/batch/batch_row.hpp"
#include "batchrpc/call/host.hpp"

namespace batchrpc::detail {

/// Where a batcher runs: on the first node that exposed it, or on a thread of its own if a row came
/// before. Its values never change once there is a host. Not thread-safe.
class BatcherHost {
 public:
  /// A node's callbacks.
  struct Callbacks {
    std::function<void()> on_change;  ///< after any change of its group
    std::function<void()> on_end;
  };

  BatcherHost() = default;
  BatcherHost(const BatcherHost&) = delete;
  BatcherHost& operator=(const BatcherHost&) = delete;

  /// Throws InvalidArgument for options that the host does not support; then nothing has changed.
  void adopt(const std::shared_ptr<Host>& host, const BatchOptions& options, Callbacks callbacks);
  /// Reports statistics to the first node that asks; others get none.
  void report_statistics(const std::shared_ptr<Host>& host, Host::BatcherStatistics statistics);
  /// Throws InvalidArgument for a lock other than the host's.
  void require_lock(const Host& host) const;
  /// Cancels the callbacks.
  void forget_callbacks();
  /// Reports the last statistics to the node that asked.
  void report_last(const std::function<BatcherMetrics()>& last) const;

  [[nodiscard]] explicit operator bool() const noexcept { return host_ != nullptr; }
  /// These need a host:
  /// @{
  [[nodiscard]] const Host& get() const { return *host_; }
  [[nodiscard]] Loop& loop() const { return *host_->loop(); }
  [[nodiscard]] Duration dead_after() const { return host_->dead_after(); }
  [[nodiscard]] TimePoint now() const { return host_->loop()->now(); }
  [[nodiscard]] Executor& executor() const { return *executor_; }
  [[nodiscard]] const std::shared_ptr<Executor>& shared_executor() const { return executor_; }
  /// The lock that each batch holds while it runs; null: none.
  [[nodiscard]] const std::shared_ptr<AsyncMutex>& exclusive() const { return host_->exclusive(); }
  /// Returns a function that says which peers are live.
  [[nodiscard]] std::function<bool(std::string_view)> is_live() const {
    return [host = host_](std::string_view peer) { return host->is_live(peer); };
  }
  /// @}

  /// Whether the call's caller is gone.
  [[nodiscard]] bool has_left(const BatchCall& call) const {
    return call.caller && host_ && !host_->is_current(*call.caller);
  }

 private:
  std::shared_ptr<Host> host_;
  std::shared_ptr<Executor> executor_;
  std::uint64_t change_handler_ = 0;
  std::uint64_t end_handler_ = 0;
  std::shared_ptr<Host> asking_;         // the node that gets statistics; null: none
  std::uint64_t statistics_number_ = 0;  // cancels them
};

}  // namespace batchrpc::detail
