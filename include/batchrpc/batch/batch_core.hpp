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

/// What becomes of the rows that wait when a batcher is closed.
enum class BatchClose : unsigned char {
  fail,   ///< they fail with ShutDown
  drain,  ///< they run, at once
};

namespace detail {

/// How a batch ended, or the future of that, which does not fail: its handler waits for something.
using BatchEnd = std::variant<BatchOutcome, Future<BatchOutcome>>;

/// What the typed part of a batcher does for the part that does not know types.
struct BatchWork {
  /// Runs the handler on the calls and completes each. Does not throw.
  std::function<BatchEnd(TakenBatch batch)> run;
  /// Of a reducer: takes a call's arguments while the batch still fills. Calls of one batcher come
  /// one after the other, and not while `run` does. Throws what the call is to fail with.
  std::function<void(BatchCall& call)> accumulate{};
  /// Of rows that have a device: throws InvalidArgument when there is none of that name.
  std::function<void(const std::string& device)> check_device{};
  bool can_pad = true;     ///< rows can be copied, to fill up a preferred size
  bool can_repeat = true;  ///< and so can be run again in halves
};

/// Gathers calls into batches and starts them: the part of a batcher that does not know types.
/// Thread-safe.
class BATCHRPC_EXPORT BatchCore {
 public:
  /// Throws InvalidArgument that names the option.
  [[nodiscard]] static std::shared_ptr<BatchCore> make(BatchOptions options, BatchWork work);
  virtual ~BatchCore();

  /// Uses the node's clock and workers, and its knowledge of who lives. Before the first row; later
  /// calls change nothing. Throws InvalidArgument when all_of has names that the node's group
  /// cannot have, for a lock (Host::exclusive) of a batcher whose parallelism is not 1, and for one
  /// that comes too late.
  virtual void exposed_on(const std::shared_ptr<Host>& host) = 0;

  /// Queues a call; sets its `arrived`, and its caller and deadline from the calling thread's
  /// CallContext where it has none. Null, or why it was refused: the call is then untouched.
  [[nodiscard]] virtual std::exception_ptr add(std::unique_ptr<BatchCall>& call) = 0;
  /// Drops the call of that ticket if it waits: it fails with Cancelled. One that has started goes
  /// on.
  virtual void cancel(std::uint64_t ticket) = 0;
  /// A call of so many bytes of payloads is announced. `held`: it is to wait until `gate` is
  /// opened. What is returned is kept until the call is here, or never will be.
  [[nodiscard]] virtual std::shared_ptr<void> expect_transfer(
      std::size_t bytes, const std::shared_ptr<TransferGate>& gate, bool& held) = 0;
  /// Counts a call that was refused before it came here.
  virtual void count_refused(std::size_t rows, std::uint64_t BatchStatistics::*as) = 0;

  virtual void flush() = 0;
  virtual void pause() = 0;
  virtual void resume() = 0;
  /// The future is ready when nothing waits or runs any more.
  [[nodiscard]] virtual Future<void> close(BatchClose how) = 0;

  [[nodiscard]] virtual std::shared_ptr<const BatchOptions> options() const = 0;
  /// Throws InvalidArgument that names the option, or one that cannot be changed.
  virtual void set_options(BatchOptions options) = 0;
  [[nodiscard]] virtual BatchStatistics statistics() const = 0;
};

}  // namespace detail
}  // namespace batchrpc
