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

/// Decides when batches start and what goes into each, and counts those under way. A batch is
/// starting from start() to take(), and then running until ended(). Not thread-safe.
class BatchStarts {
 public:
  explicit BatchStarts(const BatchOptions& options) { configure(options, options); }
  /// What was learnt with the options `before` stays where it still holds.
  void configure(const BatchOptions& before, const BatchOptions& now);

  /// Rows have come.
  void arrived(TimePoint now, std::size_t rows) {
    if (adaptive_) adaptive_->arrived(now, rows);
  }
  /// Why a batch of the lane, which is not empty, starts now; nothing if it waits.
  [[nodiscard]] std::optional<BatchReason> due(const BatchLane& lane, bool group_complete,
                                               TimePoint now) const;
  /// When the lane is due if nothing else happens; TimePoint::max() for never, also while as many
  /// batches as may be are under way.
  [[nodiscard]] TimePoint due_at(const BatchLane& lane) const {
    return has_free_slot() ? triggers_.due_at(lane) : TimePoint::max();
  }
  /// When the first lane is due that is not at `now`.
  [[nodiscard]] TimePoint next_due(WaitingCalls& waiting, TimePoint now) const;

  struct Starting {
    std::size_t batches = 0;  ///< so many are to begin, each by take()
    bool complete = false;    ///< none of those that are due would take another row
  };
  /// Has those batches start that are due.
  [[nodiscard]] Starting start(WaitingCalls& waiting, TimePoint now);
  /// A batch that start() has asked for begins: its calls, or none if they are gone, or it must not
  /// run any more. Where there are some it runs.
  [[nodiscard]] TakenBatch take(WaitingCalls& waiting, TimePoint now);
  /// A batch that ran has ended; `waiting` rows wait now.
  void ended(TimePoint started, TimePoint now, std::size_t rows, std::size_t waiting,
             std::span<const TimePoint> arrivals);

  /// There is no room, and nothing else would make some: the oldest lane is not to wait for more,
  /// unless another one is due.
  void flush_oldest(WaitingCalls& waiting, TimePoint now) const;

  void pause() noexcept { paused_ = true; }
  /// Returns whether there was a pause.
  bool resume() noexcept { return std::exchange(paused_, false); }
  [[nodiscard]] bool is_paused() const noexcept { return paused_; }
  /// All that waits is due, and a pause is over; until stop_draining().
  void drain() noexcept {
    draining_ = true;
    paused_ = false;
  }
  void stop_draining() noexcept { draining_ = false; }
  [[nodiscard]] bool is_draining() const noexcept { return draining_; }

  [[nodiscard]] bool any_starting() const noexcept { return starting_ > 0; }
  [[nodiscard]] std::size_t running() const noexcept { return running_; }
  /// A batch might run, and none does.
  [[nodiscard]] bool is_idle() const noexcept { return !paused_ && running_ == 0; }

  /// After which there may be room in a queue that is full; zero: nobody knows.
  [[nodiscard]] Duration retry_after() const noexcept {
    return batch_time_ / static_cast<Duration::rep>(parallelism_);
  }
  /// What is in force, as BatchStatistics says.
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
