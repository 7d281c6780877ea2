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

/// Between the typed Batcher and the part of it that does not know types.
namespace batchrpc::detail {

/// One call of a batcher: a row, or several of one caller's.
class BATCHRPC_EXPORT BatchCall : public Pooled {
 public:
  virtual ~BatchCall();
  /// Completes the call. `began`: its handler had begun, so that `error` is the handler's own.
  virtual void fail(const std::exception_ptr& error, bool began) noexcept = 0;

  std::shared_ptr<const PeerIdentity> caller;  ///< null: of this process
  TimePoint arrived;
  std::optional<TimePoint> deadline;
  Duration timeout{};  ///< from its arrival; zero: as the deadline says
  std::string key;     ///< only calls of one key go into one batch
  int priority = 0;
  std::size_t rows = 1;
  std::size_t bytes = 0;     ///< that its arguments take, about
  std::uint64_t ticket = 0;  ///< by which it can be cancelled; 0: it cannot

  Ref<const CallExtras> extras;    ///< of the call that it is, or belongs to; may be null
  bool is_peers = false;           ///< it is a peer's call, not one that a handler makes here
  std::shared_ptr<void> transfer;  ///< by which it was announced; null: it was not
  /// The thread that brings it reads messages, and may run the batch that it completes.
  bool may_run_batch = false;

  // Of the queue:
  std::uint64_t number = 0;  ///< how many came before
  std::uint64_t place = 0;   ///< and of its key
  bool pinned = false;       ///< is part of the batch, whatever becomes of its caller
  bool accumulated = false;  ///< has been: of a reducer
  bool flushed = false;      ///< by flush(), when it was held back
  bool early = false;        ///< it arrived before some that are ahead of it
};

using BatchCalls = std::vector<std::unique_ptr<BatchCall>>;

/// Calls that were taken to be run together.
struct TakenBatch {
  BatchCalls calls;
  std::size_t rows = 0;  ///< of all of them
  BatchReason reason = BatchReason::idle;
  TimePoint started;
  std::shared_ptr<const BatchOptions> options;
  std::shared_ptr<Executor> executor;  ///< that runs the handler
  std::uint64_t number = 0;            ///< of those of the process that are recorded, from 1 on
  Ref<const CallExtras> recorded{};    ///< where its handler's run is recorded; null: nowhere
};

/// What became of one, in rows.
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

/// The size that `rows` rows are padded up to: the smallest of the ascending `preferred` that holds
/// them; `rows`, where there is none.
[[nodiscard]] BATCHRPC_EXPORT std::size_t padded_size(const std::vector<std::size_t>& preferred,
                                                      std::size_t rows) noexcept;

}  // namespace batchrpc::detail
