#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

#include "batchrpc/base/export.hpp"
#include "batchrpc/batch/batch_call_options.hpp"
#include "batchrpc/batch/batch_core.hpp"
#include "batchrpc/batch/batch_row.hpp"
#include "batchrpc/call/call_context.hpp"
#include "batchrpc/call/call_state.hpp"

namespace batchrpc::detail {

/// Takes a row out of its batcher when the remote call that it belongs to is cancelled.
class BATCHRPC_EXPORT RowHook final : public CancelHook {
 public:
  ~RowHook() override;
  /// Returns false if that call was cancelled before.
  [[nodiscard]] bool follow(Ref<CallState> call, const std::shared_ptr<BatchCore>& core,
                            std::uint64_t ticket);

 private:
  [[nodiscard]] Task task() noexcept override;

  std::weak_ptr<BatchCore> core_;
  std::uint64_t ticket_ = 0;
};

/// A call that its caller can cancel. Its members outlive its arguments and its reply, so they use
/// only the core and the ticket.
class BATCHRPC_EXPORT CancellableCall : public BatchCall {
 public:
  CancellableCall();
  ~CancellableCall() override;

  /// Cancels the call when its caller's stop token asks for it.
  std::optional<std::stop_callback<std::function<void()>>> on_stop;
  /// Cancels the call with the remote call that it belongs to.
  RowHook on_cancel;
};

/// What the copies of one batcher share, as far as it does not depend on the batcher's types. Takes
/// calls of this process and of peers, and passes them to the core.
class BATCHRPC_EXPORT BatcherIntake {
 public:
  BatcherIntake();
  virtual ~BatcherIntake();
  BatcherIntake(const BatcherIntake&) = delete;
  BatcherIntake& operator=(const BatcherIntake&) = delete;

  std::shared_ptr<BatchCore> core;  ///< destroyed after what depends on types
  bool reduces = false;

 protected:
  /// Sets what the core needs to know of the call's rows. Throws the error with which the call is
  /// to fail.
  virtual void apply_rules(BatchCall& call) const = 0;

  /// Adds a call of this process.
  void add_own(std::unique_ptr<CancellableCall> call, const BatchCallOptions& options) const;
  /// Adds a peer's call, which has this context.
  void add_peers(std::unique_ptr<CancellableCall> call, const CallContext& context) const;

 private:
  void enter(std::unique_ptr<BatchCall> call, bool taken_back) const;

  mutable std::atomic<std::uint64_t> next_ticket_{1};
};

}  // namespace batchrpc::detail
