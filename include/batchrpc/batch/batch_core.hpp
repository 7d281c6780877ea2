#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "batchrpc/base/export.hpp"
#include "batchrpc/batch/batch_options.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/node/call_context.hpp"
#include "batchrpc/node/exposed.hpp"

namespace batchrpc::detail {

/// One call's share of a batch, of whatever types.
class BATCHRPC_EXPORT BatchRow {
 public:
  virtual ~BatchRow();
  virtual void fail(const std::exception_ptr& error) noexcept = 0;

  std::shared_ptr<const PeerIdentity> caller;  ///< null: a call of this process
  TimePoint arrived;
};

/// Gathers rows into batches and starts them, one at a time: the part of a batcher that does not
/// know types. Thread-safe.
class BATCHRPC_EXPORT BatchCore final : public std::enable_shared_from_this<BatchCore> {
 public:
  using Rows = std::vector<std::unique_ptr<BatchRow>>;
  /// Runs the handler on the rows and completes each; the next batch starts when the future is
  /// ready. Does not throw.
  using RunBatch = std::function<Future<void>(Rows rows)>;

  /// Throws InvalidArgument that names the option.
  BatchCore(BatchOptions options, RunBatch run);
  ~BatchCore();

  /// Uses the node's clock and workers, and its knowledge of who lives. Before the first row; later
  /// calls change nothing.
  void exposed_on(const Host& host);

  /// Queues a row. Throws Overloaded or ShutDown; the row is then untouched.
  void add(std::unique_ptr<BatchRow>& row);

  /// Starts a batch with what there is, as soon as the handler is idle.
  void flush();

  /// Queued rows fail with ShutDown; the batch that runs finishes.
  void close();

 private:
  class Start;

  void ensure_host(std::unique_lock<std::mutex>& lock);
  void start_if_due(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] bool is_due(TimePoint now) const;
  [[nodiscard]] bool all_are_there() const;
  void arm_timer();
  void begin();
  void run(Rows rows);
  void look_again();
  void end(const std::string& why);

  const BatchOptions options_;
  const RunBatch run_;

  std::mutex mutex_;  // guards what follows
  std::optional<Host> host_;
  std::shared_ptr<Executor> executor_;
  std::uint64_t change_handler_ = 0;
  std::uint64_t end_handler_ = 0;
  std::deque<std::unique_ptr<BatchRow>> queue_;
  TimerId timer_ = 0;
  TimePoint timer_at_{};
  bool running_ = false;
  bool flushing_ = false;
  std::string closed_;  // why; empty: it is open
};

}  // namespace batchrpc::detail
