#pragma once

#include <utility>

#include "batch/batch_starts.hpp"
#include "batch/waiting_calls.hpp"
#include "batchrpc/batch/batch_options.hpp"
#include "batchrpc/batch/batch_row.hpp"

namespace batchrpc::detail {

/// Tracks which call a reducer accumulates next, and whether a task does so. A reducer takes one
/// call after the other, while no batch runs. Not thread-safe.
class Accumulation {
 public:
  /// `is_used` is false for a batcher that is not a reducer; then nothing is accumulated.
  explicit Accumulation(bool is_used) : is_used_(is_used) {}
  void configure(const BatchOptions& options) noexcept { waits_for_all_ = options.order_by_peer; }

  [[nodiscard]] bool is_used() const noexcept { return is_used_; }
  /// Whether calls are accumulated as they arrive, not only when their batch is complete.
  [[nodiscard]] bool is_early() const noexcept { return is_used_ && !waits_for_all_; }

  /// The first call that fits into the batch being gathered; null if there is none.
  [[nodiscard]] BatchCall* next(const WaitingCalls& waiting, const BatchStarts& starts) const {
    if (!is_early() || !starts.is_idle()) return nullptr;
    BatchCall* const next = waiting.next_to_accumulate();
    if (next == nullptr || waiting.accumulated_rows() + next->rows > starts.size()) return nullptr;
    return next;
  }

  /// Returns whether to post a task, because none exists; the task ends with task_ended().
  [[nodiscard]] bool needs_task() noexcept { return !std::exchange(has_task_, true); }
  void task_ended() noexcept { has_task_ = false; }
  [[nodiscard]] bool has_task() const noexcept { return has_task_; }

  /// Passes the call to the reducer until end(). The call stays in its place and is part of the
  /// batch.
  void begin(BatchCall& call) noexcept {
    call.pinned = true;
    current_ = &call;
  }
  void end() noexcept { current_ = nullptr; }
  /// The call that the reducer is accumulating; null: none.
  [[nodiscard]] const BatchCall* current() const noexcept { return current_; }

 private:
  const bool is_used_;
  bool waits_for_all_ = false;  // BatchOptions::order_by_peer
  bool has_task_ = false;
  const BatchCall* current_ = nullptr;
};

}  // namespace batchrpc::detail
