#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "batchrpc/base/export.hpp"
#include "batchrpc/batch/batch_core.hpp"
#include "batchrpc/batch/batch_info.hpp"
#include "batchrpc/batch/batch_row.hpp"
#include "batchrpc/batch/batch_traits.hpp"
#include "batchrpc/future/future.hpp"

namespace batchrpc::detail {

/// Describes the calls [first, last) of a batch.
[[nodiscard]] BATCHRPC_EXPORT BatchInfo describe_batch(const TakenBatch& batch, std::size_t first,
                                                       std::size_t last, std::size_t padding);

/// Completes one call of a batch. `row` is the index of its first row among those of the run.
/// Returns whether the caller gets a result; an exception is the error that it gets instead.
using CompleteCall = std::function<bool(BatchCall& call, std::size_t row)>;

/// Completes the calls [first, last) of a batch one by one, and counts their rows in `outcome`.
BATCHRPC_EXPORT void complete_calls(const TakenBatch& batch, std::size_t first, std::size_t last,
                                    BatchOutcome& outcome, const CompleteCall& complete);
/// Completes them with an error of the handler, and counts their rows.
BATCHRPC_EXPORT void fail_calls(const TakenBatch& batch, std::size_t first, std::size_t last,
                                const std::exception_ptr& error, BatchOutcome& outcome);

/// One batch, from when it is taken until all its calls are completed: the part that does not know
/// types. Callbacks of the handler's futures share it.
class BATCHRPC_EXPORT BatchRun : public std::enable_shared_from_this<BatchRun> {
 public:
  /// `keyed`: the calls have a BatchRules::key in common, so they may be of several kinds.
  BatchRun(TakenBatch batch, bool keyed);
  virtual ~BatchRun();
  BatchRun(const BatchRun&) = delete;
  BatchRun& operator=(const BatchRun&) = delete;

  BatchEnd start();

 protected:
  /// The calls for which the handler runs once.
  struct Share {
    std::size_t first = 0;
    std::size_t last = 0;     ///< one past the last call
    std::size_t rows = 0;     ///< number of rows of these calls
    std::size_t padding = 0;  ///< rows that are added to them
  };

  /// Stacks the rows of `share`, runs the handler, and completes the calls with its results.
  /// Returns a future that is ready when the calls are completed; an invalid one if they are
  /// already. Throws the handler's error.
  virtual Future<void> run_handler(const Share& share) = 0;
  /// Returns what the call's rows must have in common with others to be stacked with them.
  [[nodiscard]] virtual std::string kind_of(BatchCall& call) const = 0;
  /// Describes the call's rows to a person.
  [[nodiscard]] virtual std::string shape_of(BatchCall& call) const = 0;
  /// Returns the address of a call's only row if it was received into the memory of a batch; null
  /// for all other calls.
  [[nodiscard]] virtual const void* place_of(BatchCall& call) const = 0;
  /// Whether the row of `next` lies directly behind that of `call`. Both have a place.
  [[nodiscard]] virtual bool adjacent(BatchCall& call, BatchCall& next) const = 0;

  [[nodiscard]] BatchCall& call(std::size_t i) const { return *batch_.calls[i]; }
  [[nodiscard]] Stacking stacking(const Share& share) {
    return {batch_.options->device, outcome_, is_divisible(share)};
  }
  [[nodiscard]] BatchInfo describe(const Share& share) const;
  /// Counts a run of the handler that begins now.
  void count_run(const Share& share);
  /// Returns what records the handler's run; null: nothing does.
  [[nodiscard]] const Ref<const CallExtras>& recorded() const { return batch_.recorded; }

  /// Throws InvalidArgument if the handler's results are not one for each row.
  static void check_count(std::size_t results, const Share& share);
  /// Completes each call of `share` by `complete`, whose result and errors are as for
  /// complete_calls().
  void answer(const Share& share, const CompleteCall& complete);
  void fail(const Share& share, const std::exception_ptr& error) {
    fail(share.first, share.last, error);
  }
  /// Continues after a handler's future has failed: runs the halves of `share` if the batch may be
  /// divided, and otherwise fails its calls.
  Future<void> handler_failed(const Share& share, const std::exception_ptr& error);

 private:
  using Step = Future<void> (BatchRun::*)(std::size_t first, std::size_t last) noexcept;

  void fail(std::size_t first, std::size_t last, const std::exception_ptr& error);
  void fail_misfits();
  void in_place_order();
  [[nodiscard]] std::exception_ptr misfit(BatchCall& call,
                                          const std::string& wanted) const noexcept;
  [[nodiscard]] bool is_divisible(const Share& share) const;
  [[nodiscard]] Share share_of(std::size_t first, std::size_t last) const;
  Future<void> run(std::size_t first, std::size_t last) noexcept;
  Future<void> run_bisected(std::size_t first, std::size_t last) noexcept;
  Future<void> post(Step step, std::size_t first, std::size_t last);

  TakenBatch batch_;
  const bool keyed_;
  BatchOutcome outcome_;
};

}  // namespace batchrpc::detail
