#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "batch/adaptive_wait.hpp"
#include "batch/batch_counts.hpp"
#include "batch/batch_group.hpp"
#include "batch/batch_queue.hpp"
#include "batch/batch_triggers.hpp"
#include "batch/held_calls.hpp"
#include "batch/turns.hpp"
#include "batchrpc/batch/batch_core.hpp"
#include "batchrpc/future/promise.hpp"

namespace batchrpc::detail {

/// The one BatchCore. What waits is the queue's, when it starts the triggers' to say; this decides
/// nothing else than who comes in, and sees to it that batches run.
class Aggregator final : public BatchCore, public std::enable_shared_from_this<Aggregator> {
 public:
  Aggregator(BatchOptions options, BatchWork work);
  ~Aggregator() override;

  void exposed_on(const std::shared_ptr<Host>& host) override;
  [[nodiscard]] std::exception_ptr add(std::unique_ptr<BatchCall>& call) override;
  void cancel(std::uint64_t ticket) override;
  [[nodiscard]] std::shared_ptr<void> expect_transfer(std::size_t bytes,
                                                      const std::shared_ptr<TransferGate>& gate,
                                                      bool& held) override;
  void count_refused(std::size_t rows, std::uint64_t BatchStatistics::*as) override;
  void flush() override;
  void pause() override;
  void resume() override;
  [[nodiscard]] Future<void> close(BatchClose how) override;
  void expect(const std::string& peer) override;
  [[nodiscard]] std::shared_ptr<const BatchOptions> options() const override;
  void set_options(BatchOptions options) override;
  [[nodiscard]] BatchStatistics statistics() const override;

 private:
  class Posted;
  using PostedTask = void (Aggregator::*)(AsyncMutex::Guard, std::uint64_t epoch);
  using Lock = std::unique_lock<std::mutex>;
  /// Calls that are out of the queue, to be failed when the lock is released.
  struct Dropped {
    BatchCalls calls;
    std::uint64_t BatchStatistics::*count;
    std::exception_ptr error;
    bool began = false;       // their handler had begun, and has thrown the error
    bool is_counted = false;  // in dropping_
  };
  /// Why a call does not come in, and what its rows count as.
  struct Refusal {
    std::exception_ptr error;  // null: it may come in
    std::uint64_t BatchStatistics::*as = &BatchStatistics::rejected;
  };
  /// A lane of which a batch is to start, and why.
  struct DueLane {
    BatchLane* lane = nullptr;  // null: there is none
    BatchReason reason{};
  };

  // Coming in; aggregator_intake.cpp.
  void adopt(const std::shared_ptr<Host>& host);
  void ensure_host();
  [[nodiscard]] BatchGroup::IsLive who_lives() const;
  [[nodiscard]] Refusal refusal(BatchCall& call);
  [[nodiscard]] bool waits_for_room() const noexcept;
  [[nodiscard]] std::exception_ptr make_room(const BatchCall& call, bool let_in, Dropped& gone,
                                             bool& hold);
  void displace(const std::vector<const BatchCall*>& those, const std::string& limit,
                Dropped& gone);
  BatchLane& enqueue(std::unique_ptr<BatchCall> call);
  void admit_held();
  [[nodiscard]] std::exception_ptr overloaded(const std::string& limit) const;
  [[nodiscard]] std::exception_ptr too_large(const BatchCall& call) const;

  // Going out before they ran.
  template <class Which>
  void take_out(const Which& which, Dropped& gone);
  void drop_expired(TimePoint now, Dropped& gone);
  void drop_too_large(Dropped& gone);
  [[nodiscard]] bool has_left(const BatchCall& call) const;
  void drop_those_who_left();
  void end(const std::string& why);
  void fail(Dropped& gone);
  void count(Dropped& gone) noexcept;
  void left(const BatchCalls& calls);

  // Starting and ending batches.
  void start_if_due(Lock& lock, TimePoint now, bool may_run_here = false);
  [[nodiscard]] std::size_t due_batches(TimePoint now, bool& complete);
  [[nodiscard]] std::optional<BatchReason> due(const BatchLane& lane, TimePoint now) const;
  [[nodiscard]] DueLane next_lane(TimePoint now);
  [[nodiscard]] bool has_free_slot() const noexcept;
  void flush_if_full(TimePoint now);
  void arm_timer(TimePoint now);
  void arm_timer_at(TimePoint when);
  void look_again();
  void post_exclusively(PostedTask task, std::uint64_t epoch,
                        const std::shared_ptr<AsyncMutex>& exclusive);
  void post(PostedTask task, std::uint64_t epoch, AsyncMutex::Guard guard);
  void begin_here(std::uint64_t epoch);
  void begin_epoch() noexcept;
  [[nodiscard]] bool is_current(std::uint64_t epoch) const;
  void begin(AsyncMutex::Guard guard, std::uint64_t epoch);
  void run(TakenBatch batch, AsyncMutex::Guard guard);
  void ended(const BatchOutcome& outcome, TimePoint started, std::size_t rows,
             std::span<const TimePoint> arrivals);
  void adapt(const BatchOptions& before);
  void adopt_choice();
  void report_if_closed(Lock& lock);

  // Large calls that are coming in; aggregator_transfers.cpp.
  class Transfer;
  /// One that waits at its sender. The gate is its, and may be opened when the transfer is gone.
  struct HeldTransfer {
    Transfer* transfer;
    std::shared_ptr<TransferGate> gate;
  };
  [[nodiscard]] bool may_come(const Transfer& transfer);
  [[nodiscard]] bool was_let_in(const std::shared_ptr<void>& announced);
  void forget(Transfer& transfer);
  void let_all_transfers_come() noexcept;
  void let_transfers_come();
  void transfer_ended(Transfer& transfer);

  // Of reducers.
  [[nodiscard]] BatchCall* next_to_accumulate() const;
  void accumulate_if_due(Lock& lock);
  void accumulate(AsyncMutex::Guard guard, std::uint64_t epoch);
  [[nodiscard]] bool accumulate_next(Lock& lock);

  const BatchWork work_;

  mutable std::mutex mutex_;  // guards what follows
  std::shared_ptr<const BatchOptions> options_;
  BatchTriggers triggers_;
  std::optional<AdaptiveWait> adaptive_;
  std::shared_ptr<Host> host_;
  std::shared_ptr<Executor> executor_;
  std::uint64_t change_handler_ = 0;
  std::uint64_t end_handler_ = 0;
  std::shared_ptr<Host> asking_;      // whose node asks for figures
  std::uint64_t figures_number_ = 0;  // by which those are known there

  BatchQueue queue_;
  HeldCalls held_;
  BatchGroup group_;
  BatchCounts counts_;
  Duration batch_time_{};  // a moving average

  Turns<HeldTransfer> held_transfers_;
  std::size_t transfers_ = 0;       // that come in now
  std::size_t transfer_bytes_ = 0;  // of these

  TimerId timer_ = 0;
  TimePoint timer_at_{};
  std::uint64_t epoch_ = 0;   // of the exclusive mutex: what was posted in another one is void
  std::size_t starting_ = 0;  // batches that were posted, and have not taken their calls
  std::size_t running_ = 0;   // batches that have
  std::size_t dropping_ = 0;  // drops whose calls are yet to be told
  BatchCall* accumulating_ = nullptr;
  bool accumulation_posted_ = false;  // or is under way
  bool accumulates_ = false;          // is under way
  bool paused_ = false;
  bool draining_ = false;
  std::string closed_;  // why; empty: it is open
  std::vector<Promise<void>> closing_;
};

}  // namespace batchrpc::detail
