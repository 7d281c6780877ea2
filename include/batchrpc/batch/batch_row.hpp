#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "batchrpc/base/block_pool.hpp"
#include "batchrpc/base/executor.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/batch/batch_info.hpp"
#include "batchrpc/batch/batch_options.hpp"
#include "batchrpc/call/call_context.hpp"

/// The interface between the typed Batcher and the part of it that does not know types.
namespace batchrpc::detail {

/// One call of a batcher: one or more rows of one caller.
class BATCHRPC_EXPORT BatchCall : public Pooled {
 public:
  BatchCall();
  virtual ~BatchCall();
  BatchCall(const BatchCall&) = delete;
  BatchCall& operator=(const BatchCall&) = delete;
  /// Completes the call with an error. `began`: its handler had started, so that `error` comes from
  /// the handler.
  virtual void fail(const std::exception_ptr& error, bool began) noexcept = 0;

  std::shared_ptr<const PeerIdentity> caller;  ///< null: a call of this process
  TimePoint arrived;
  std::optional<TimePoint> deadline;
  Duration timeout{};  ///< counts from its arrival; zero: only `deadline` applies
  std::string key;     ///< only calls with the same key go into one batch
  int priority = 0;
  std::size_t rows = 1;
  std::size_t bytes = 0;     ///< approximate size of its arguments
  std::uint64_t ticket = 0;  ///< identifies it for cancel(); 0: it cannot be cancelled

  Ref<const CallExtras> extras;    ///< of this call, or of the call it belongs to; may be null
  bool is_peers = false;           ///< it is a peer's call, not one that a handler makes here
  std::shared_ptr<void> transfer;  ///< kept since the announcement; null: it was not announced
  /// The thread that adds the call reads messages, and may run the batch that the call completes.
  bool may_run_batch = false;

  // Set by the queue:
  std::uint64_t number = 0;  ///< the number of calls that came before
  std::uint64_t place = 0;   ///< the same, among calls of its key
  bool pinned = false;       ///< stays part of the batch even if its caller leaves
  bool accumulated = false;  ///< its reducer has accumulated it
  bool flushed = false;      ///< flush() was called while it was held back
  bool early = false;        ///< it arrived before some calls that are ahead of it
};

using BatchCalls = std::vector<std::unique_ptr<BatchCall>>;

/// The calls that were taken from the queue to run together.
struct TakenBatch {
  BatchCalls calls;
  std::size_t rows = 0;  ///< number of rows of all calls
  BatchReason reason = BatchReason::idle;
  TimePoint started;
  std::shared_ptr<const BatchOptions> options;
  std::shared_ptr<Executor> executor;  ///< runs the handler
  std::uint64_t number = 0;            ///< counts recorded batches of the process, from 1; 0: none
  Ref<const CallExtras> recorded{};    ///< records the handler's run; null: it is not recorded
};

/// The result of a batch, in rows.
struct BatchOutcome {
  std::size_t answered = 0;
  std::size_t failed = 0;
  std::size_t invalid = 0;
  std::size_t handler_runs = 0;
  std::size_t padding = 0;
  std::size_t rows_copied = 0;
  std::size_t rows_in_place = 0;
  std::size_t bytes_copied = 0;
};

/// Returns the size to which `rows` rows are padded: the smallest of the ascending `preferred`
/// sizes that is at least `rows`. Returns `rows` if there is none.
[[nodiscard]] BATCHRPC_EXPORT std::size_t padded_size(const std::vector<std::size_t>& preferred,
                                                      std::size_t rows) noexcept;

}  // namespace batchrpc::detail
