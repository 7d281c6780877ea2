#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "batch/adaptive_wait.hpp"
#include "batch/batch_triggers.hpp"
#include "batch/waiting_calls.hpp"
#include "batchrpc/batch/batch_options.hpp"
#include "batchrpc/batch/batch_row.hpp"

namespace batchrpc::detail {

/// Decides when batches start and which calls each takes, and counts the batches in progress. A
/// batch is starting from start() to take(), and then running until ended(). Not thread-safe.
class BatchStarts {
 public:
  explicit BatchStarts(const BatchOptions& options) { configure(options, options); }
  /// Whatever was learnt with the options `before` is kept if it still holds.
  void configure(const BatchOptions& before, const BatchOptions& now);

  /// Call this when rows have arrived.
  void arrived(TimePoint now, std::size_t rows) {
    if (adaptive_) adaptive_->arrived(now, rows);
  }
  /// Why a batch of the lane, which is not empty, starts now; empty if it waits.
  [[nodiscard]] std::optional<BatchReason> due(const BatchLane& lane, bool group_complete,
                                               TimePoint now) const;
  /// When the lane is due if nothing else happens. TimePoint::max() means never; it is also
  /// returned while the maximum number of batches is in progress.
  [[nodiscard]] TimePoint due_at(const BatchLane& lane) const {
    return has_free_slot() ? triggers_.due_at(lane) : TimePoint::max();
  }
  /// The time at which the next lane becomes due, after those due at `now`.
  [[nodiscard]] TimePoint next_due(WaitingCalls& waiting, TimePoint now) const;

  struct Starting {
    std::size_t batches = 0;  ///< batches that must begin, each with take()
    bool complete = false;    ///< no due batch would take another row
  };
  /// Marks the due batches as starting.
  [[nodiscard]] Starting start(WaitingCalls& waiting, TimePoint now);
  /// A batch from start() begins. Returns its calls, or none if they are gone or it must not run
  /// any more. If it has calls, it is running from now on.
  [[nodiscard]] TakenBatch take(WaitingCalls& waiting, TimePoint now);
  /// A running batch has ended; `waiting` rows wait now.
  void ended(TimePoint started, TimePoint now, std::size_t rows, std::size_t waiting,
             std::span<const TimePoint> arrivals);

  /// The queue is full and nothing else would free room. Unless another lane is due, the oldest
  /// lane stops waiting for more rows.
  void flush_oldest(WaitingCalls& waiting, TimePoint now) const;

  void pause() noexcept { paused_ = true; }
  /// Returns whether there was a pause.
  bool resume() noexcept { return std::exchange(paused_, false); }
  [[nodiscard]] bool is_paused() const noexcept { return paused_; }
  /// Makes all waiting calls due and ends a pause; until stop_draining().
  void drain() noexcept {
    draining_ = true;
    paused_ = false;
  }
  void stop_draining() noexcept { draining_ = false; }
  [[nodiscard]] bool is_draining() const noexcept { return draining_; }

  [[nodiscard]] bool any_starting() const noexcept { return starting_ > 0; }
  [[nodiscard]] std::size_t running() const noexcept { return running_; }
  /// A batch may run, and none does.
  [[nodiscard]] bool is_idle() const noexcept { return !paused_ && running_ == 0; }

  /// The time after which a full queue may have room; zero: unknown.
  [[nodiscard]] Duration retry_after() const noexcept {
    return batch_time_ / static_cast<Duration::rep>(parallelism_);
  }
  /// The current values, as in BatchStatistics.
  /// @{
  [[nodiscard]] std::size_t size() const noexcept { return triggers_.size(); }
  [[nodiscard]] std::size_t min_size() const noexcept { return triggers_.min_size(); }
  [[nodiscard]] Duration wait() const noexcept { return triggers_.wait(); }
  /// @}

 private:
  struct DueLane {
    BatchLane* lane = nullptr;  // null: there is none
    BatchReason reason{};
  };
  [[nodiscard]] DueLane next_lane(WaitingCalls& waiting, TimePoint now) const;
  [[nodiscard]] bool has_free_slot() const noexcept { return starting_ + running_ < parallelism_; }

  BatchTriggers triggers_;
  std::optional<AdaptiveWait> adaptive_;
  std::size_t parallelism_ = 1;
  std::size_t max_overtaking_ = 0;
  Duration batch_time_{};  // a moving average
  std::size_t starting_ = 0;
  std::size_t running_ = 0;
  bool paused_ = false;
  bool draining_ = false;
};

}  // namespace batchrpc::detail
