#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "batch/batch_group.hpp"
#include "batch/batch_queue.hpp"
#include "batch/held_calls.hpp"
#include "batchrpc/batch/batch_options.hpp"
#include "batchrpc/batch/batch_row.hpp"

namespace batchrpc::detail {

/// All waiting calls of a batcher: those in its queue, and those held back until the queue has
/// room. Decides whether a call finds room, and whether the group is complete, which counts the
/// calls in the queue. Not thread-safe.
class WaitingCalls {
 public:
  /// Whether a call is admitted, and which calls it displaces.
  struct Room {
    bool refused = false;
    bool held = false;    ///< it waits outside the queue
    std::string limit{};  ///< the limit that was reached; empty: none
    /// If it is not refused: the calls to drop for it.
    std::vector<const BatchCall*> giving_way{};
  };

  /// Sets the limits. `is_live` is null before there is a host, and then no call waits.
  void configure(const BatchOptions& options, const BatchGroup::IsLive& is_live);
  /// The name of this node.
  void be_of(std::string node) { group_.be_of(std::move(node)); }
  /// The group has changed.
  void refresh(const BatchGroup::IsLive& is_live) { group_.refresh(is_live); }

  /// For a call that has arrived. `let_in`: it was admitted before it arrived, so its bytes already
  /// have room. Those of calls that are still arriving take none.
  [[nodiscard]] Room room_for(const BatchCall& call, bool let_in) const;
  /// Queues a call; returns its lane.
  BatchLane& add(std::unique_ptr<BatchCall> call);
  /// Holds a call back.
  void hold(std::unique_ptr<BatchCall> call) { held_.add(std::move(call)); }
  /// Queues held calls while there is room.
  void admit_held();

  /// Takes calls of a lane for a batch, as BatchLane::take does.
  [[nodiscard]] BatchCalls take(BatchLane& lane, std::size_t rows, std::size_t max_overtaking);
  /// Removes and returns all calls for which `which` is true.
  template <class Which>
  [[nodiscard]] BatchCalls remove_if(const Which& which) {
    BatchCalls gone;
    queue_.remove_if(which, gone);
    left_queue(gone);
    held_.remove_if(which, gone);
    return gone;
  }
  /// Removes and returns the calls whose deadline is at or before `now`, unless they are pinned.
  [[nodiscard]] BatchCalls remove_expired(TimePoint now);
  /// The calls that wait now no longer wait for more rows.
  void flush();

  template <class Use>
  void for_each_lane(const Use& use) {
    queue_.for_each_lane(use);
  }

  /// See BatchQueue.
  /// @{
  [[nodiscard]] BatchCall* next_to_accumulate() const { return queue_.next_to_accumulate(); }
  void accumulated(BatchCall& call) { queue_.accumulated(call); }
  [[nodiscard]] std::size_t accumulated_rows() const noexcept { return queue_.accumulated_rows(); }
  [[nodiscard]] std::size_t calls_to_accumulate() const noexcept {
    return queue_.calls_to_accumulate();
  }
  /// @}

  [[nodiscard]] bool group_complete() const noexcept { return group_.complete(); }
  [[nodiscard]] bool is_queue_empty() const noexcept { return queue_.empty(); }
  [[nodiscard]] bool empty() const noexcept { return queue_.empty() && held_.rows() == 0; }
  [[nodiscard]] std::size_t queued_rows() const noexcept { return queue_.rows(); }
  [[nodiscard]] std::size_t held_rows() const noexcept { return held_.rows(); }
  /// The rows of all calls, queued or held.
  [[nodiscard]] std::size_t rows() const noexcept { return queue_.rows() + held_.rows(); }
  /// The bytes of all calls, queued or held.
  [[nodiscard]] std::size_t bytes() const noexcept { return queue_.bytes() + held_.bytes(); }
  /// A lower bound of all deadlines.
  [[nodiscard]] TimePoint earliest_deadline() const noexcept {
    return std::min(queue_.earliest_deadline(), held_.earliest_deadline());
  }

 private:
  void left_queue(const BatchCalls& calls) {
    for (const auto& call : calls)
      group_.remove(*call);
  }

  std::size_t max_rows_ = std::numeric_limits<std::size_t>::max();  // of queued, and of held calls
  std::size_t max_bytes_ = std::numeric_limits<std::size_t>::max();
  bool holds_ = false;  // OnFull::wait
  BatchQueue queue_;
  HeldCalls held_;
  BatchGroup group_;
};

}  // namespace batchrpc::detail
