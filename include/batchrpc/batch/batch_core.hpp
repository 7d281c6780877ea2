#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "batchrpc/base/export.hpp"
#include "batchrpc/batch/batch_options.hpp"
#include "batchrpc/batch/batch_row.hpp"
#include "batchrpc/batch/batch_statistics.hpp"
#include "batchrpc/call/exposed.hpp"
#include "batchrpc/call/receive_plan.hpp"
#include "batchrpc/future/future.hpp"

namespace batchrpc {

/// What happens to the waiting rows when a batcher is closed.
enum class BatchClose : unsigned char {
  fail,   ///< they fail with ShutDown
  drain,  ///< they run at once
};

namespace detail {

/// How a batch ended. The future is used when the handler is asynchronous, and never fails.
using BatchEnd = std::variant<BatchOutcome, Future<BatchOutcome>>;

/// What the typed part of a batcher provides to the part that does not know types.
struct BatchWork {
  /// Runs the handler on the calls and completes each. Does not throw.
  std::function<BatchEnd(TakenBatch batch)> run;
  /// Set for a reducer: takes a call's arguments while the batch still fills. Never runs at the
  /// same time as another call's, or as `run`. Throws the error with which the call is to fail.
  std::function<void(BatchCall& call)> accumulate{};
  /// Set for rows that have a device: throws InvalidArgument if no device has that name.
  std::function<void(const std::string& device)> check_device{};
  bool can_pad = true;     ///< rows can be copied, to fill up a preferred size
  bool can_repeat = true;  ///< rows can be copied, so that they can be run again in halves
};

/// Gathers calls into batches and starts them: the part of a batcher that does not know types.
/// Thread-safe.
class BATCHRPC_EXPORT BatchCore {
 public:
  /// Throws InvalidArgument that names the option.
  [[nodiscard]] static std::shared_ptr<BatchCore> make(BatchOptions options, BatchWork work);
  virtual ~BatchCore();

  /// Uses the node's clock, workers and knowledge of live peers from now on. Must come before the
  /// first row; later calls change nothing. Throws InvalidArgument if all_of has names that the
  /// node's group cannot have, if a lock (Host::exclusive) is combined with a parallelism other
  /// than 1, and if a lock comes too late.
  virtual void exposed_on(const std::shared_ptr<Host>& host) = 0;

  /// Queues a call and sets its `arrived`. If it has no caller and deadline, it gets those of the
  /// calling thread's CallContext. Returns null, or the error that refused it; the call is then
  /// unchanged.
  [[nodiscard]] virtual std::exception_ptr add(std::unique_ptr<BatchCall>& call) = 0;
  /// Drops the waiting call with that ticket: it fails with Cancelled. A call that has started
  /// continues.
  virtual void cancel(std::uint64_t ticket) = 0;
  /// Reports that a call with this many bytes of payloads is announced. Sets `held` if it must wait
  /// until `gate` is opened. Keep the result until the call has arrived or can no longer arrive.
  [[nodiscard]] virtual std::shared_ptr<void> expect_transfer(
      std::size_t bytes, const std::shared_ptr<TransferGate>& gate, bool& held) = 0;
  /// Counts a call that was refused before it reached this object.
  virtual void count_refused(std::size_t rows, std::uint64_t BatchStatistics::*as) = 0;

  virtual void flush() = 0;
  virtual void pause() = 0;
  virtual void resume() = 0;
  /// Returns a future that is ready when nothing waits or runs any more.
  [[nodiscard]] virtual Future<void> close(BatchClose how) = 0;

  [[nodiscard]] virtual std::shared_ptr<const BatchOptions> options() const = 0;
  /// Throws InvalidArgument that names an option that is out of range or cannot be changed.
  virtual void set_options(BatchOptions options) = 0;
  [[nodiscard]] virtual BatchStatistics statistics() const = 0;
};

}  // namespace detail
}  // namespace batchrpc
