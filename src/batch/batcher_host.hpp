#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "batchrpc/batch/batch_options.hpp"
#include "batchrpc/batch/batch_row.hpp"
#include "batchrpc/call/exposed.hpp"

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
  using Figures = std::function<std::optional<BatcherMetrics>()>;

  BatcherHost() = default;
  BatcherHost(const BatcherHost&) = delete;
  BatcherHost& operator=(const BatcherHost&) = delete;

  /// Throws InvalidArgument for options that do not go with this host; then nothing has changed.
  void adopt(const Host& host, const BatchOptions& options, Callbacks callbacks);
  /// The first node that asks for figures gets them; others none.
  void tell_figures(const Host& host, const Figures& figures);
  /// Throws InvalidArgument for a lock that is not the one of the host.
  void require_lock(const Host& host) const;
  /// Nothing is called back any more.
  void forget_callbacks();
  /// The last figures, for the node that asks for them.
  void tell_last(const std::function<BatcherMetrics()>& last) const;

  [[nodiscard]] explicit operator bool() const noexcept { return host_.has_value(); }
  /// Of one that is there:
  /// @{
  [[nodiscard]] const Host& get() const { return *host_; }
  [[nodiscard]] Loop& loop() const { return *host_->loop; }
  [[nodiscard]] TimePoint now() const { return host_->loop->now(); }
  [[nodiscard]] Executor& executor() const { return *executor_; }
  [[nodiscard]] const std::shared_ptr<Executor>& shared_executor() const { return executor_; }
  /// Each batch has it while it runs; null: none.
  [[nodiscard]] const std::shared_ptr<AsyncMutex>& exclusive() const { return host_->exclusive; }
  /// @}
  /// Whether the caller of that call is gone.
  [[nodiscard]] bool has_left(const BatchCall& call) const {
    return call.caller && host_ && !host_->is_current(*call.caller);
  }

 private:
  std::optional<Host> host_;
  std::shared_ptr<Executor> executor_;
  std::uint64_t change_handler_ = 0;
  std::uint64_t end_handler_ = 0;
  std::function<void(BatcherMetrics last)> forget_figures_;  // of the node that asks for them
};

/// The host of a batcher without a node: it has a loop, and so a thread and a clock, of its own.
[[nodiscard]] Host own_host();

}  // namespace batchrpc::detail
