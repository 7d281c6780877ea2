#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "batch/accumulation.hpp"
#include "batch/batch_closing.hpp"
#include "batch/batch_counts.hpp"
#include "batch/batch_starts.hpp"
#include "batch/batch_timer.hpp"
#include "batch/batcher_host.hpp"
#include "batch/incoming_transfers.hpp"
#include "batch/waiting_calls.hpp"
#include "batchrpc/batch/batch_core.hpp"
#include "batchrpc/future/promise.hpp"

namespace batchrpc::detail {

/// The only BatchCore. Its parts decide which calls are admitted, when batches start and what is
/// accumulated; they know nothing about threads. This class guards them with one mutex, and runs
/// batches without it.
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
  [[nodiscard]] std::shared_ptr<const BatchOptions> options() const override;
  void set_options(BatchOptions options) override;
  [[nodiscard]] BatchStatistics statistics() const override;

 private:
  class Posted;
  class Transfer;
  struct Arrival;
  using PostedTask = void (Aggregator::*)(AsyncMutex::Guard);
  using Counter = std::uint64_t BatchStatistics::*;

  /// Work to do after the mutex has been released, because it runs the program's code. Functions
  /// add to it.
  struct Deferred {
    std::size_t begins = 0;               // tasks to post, each beginning a batch
    bool begins_here = false;             // begin a batch on this thread
    bool accumulates = false;             // post a task that accumulates
    IncomingTransfers::Gates gates{};     // to open
    std::vector<Promise<void>> closed{};  // to keep

    [[nodiscard]] bool any() const noexcept {
      return begins > 0 || begins_here || accumulates || !gates.empty() || !closed.empty();
    }
  };
  /// Calls that were removed and counted, and are still to be answered without the mutex.
  struct [[nodiscard]] Dropped {
    BatchCalls calls{};
    std::exception_ptr error{};
    bool began = false;  // their handler had begun and threw the error

    [[nodiscard]] bool any() const noexcept { return !calls.empty(); }
  };
  /// Why a call is not admitted, and the counter for its rows.
  struct Refusal {
    std::exception_ptr error{};  // null: it is admitted
    Counter as = &BatchStatistics::rejected;
  };

  // The caller must hold the mutex for the functions below, up to the next such comment.

  // Admission; aggregator_intake.cpp.
  void adopt(const std::shared_ptr<Host>& host);
  void adopt_lone_host();
  void take_in(std::unique_ptr<BatchCall>& call, const std::shared_ptr<void>& announced,
               Arrival& arrival);
  void follow(const Arrival& arrival, Deferred& todo);
  [[nodiscard]] Refusal refusal(BatchCall& call);
  [[nodiscard]] std::exception_ptr overloaded(const std::string& limit) const;
  [[nodiscard]] std::exception_ptr too_large(const BatchCall& call) const;

  // Leaving without having run; aggregator_leaving.cpp.
  [[nodiscard]] Dropped drop(BatchCalls calls, Counter as, std::exception_ptr error,
                             bool began = false);
  [[nodiscard]] Dropped displace(const WaitingCalls::Room& room);
  [[nodiscard]] Dropped drop_expired(TimePoint now);
  [[nodiscard]] Dropped drop_too_large();

  // Starting and ending batches; aggregator.cpp.
  void start_if_due(TimePoint now, Deferred& todo, bool may_run_here = false);
  [[nodiscard]] TakenBatch take_batch(TimePoint now);
  [[nodiscard]] bool waits_for_room() const noexcept;
  [[nodiscard]] TimePoint next_end() const;
  void flush_if_full(TimePoint now);
  void arm_timer_at(TimePoint when);
  void report_if_closed(Deferred& todo);

  // Large calls that are arriving; aggregator_transfers.cpp.
  [[nodiscard]] IncomingTransfers::Room transfer_room() const;
  [[nodiscard]] bool was_let_in(const std::shared_ptr<void>& announced);
  void let_transfers_come(Deferred& todo);

  // Reducers; aggregator_reducing.cpp.
  [[nodiscard]] Dropped drop_accumulated(const BatchCall& call, const std::exception_ptr& error);

  // The caller must not hold the mutex for the functions below.

  void perform(Deferred&& todo);
  void tell(Dropped&& gone);
  void tell_and_perform(Deferred&& todo, Dropped&& gone);
  void tell_and_follow(Arrival& arrival);
  void post_exclusively(PostedTask task);
  void post(PostedTask task, AsyncMutex::Guard guard);
  void begin(AsyncMutex::Guard guard);
  void run(TakenBatch batch, AsyncMutex::Guard guard);
  void ended(const BatchOutcome& outcome, TimePoint started, std::size_t rows,
             std::span<const TimePoint> arrivals);
  void look_again();
  void drop_those_who_left();
  void end(const std::string& why);
  void transfer_ended(Transfer& transfer);
  void let_all_transfers_come() noexcept;
  void accumulate(AsyncMutex::Guard guard);
  [[nodiscard]] bool accumulate_next();

  const BatchWork work_;

  mutable std::mutex mutex_;  // guards the members below; none of the program's code runs under it
  std::shared_ptr<const BatchOptions> options_;
  BatcherHost host_;
  WaitingCalls waiting_;
  BatchStarts starts_;
  Accumulation accumulation_;
  IncomingTransfers transfers_;
  BatchTimer timer_;
  BatchClosing closing_;
  BatchCounts counts_;
};

}  // namespace batchrpc::detail
