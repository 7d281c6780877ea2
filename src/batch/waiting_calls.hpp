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

/// All calls of a batcher that wait: those in its queue, and those that are held back until the
/// queue has room. Says whom there is room for, and whether the group is complete, which counts the
/// calls in the queue. Not thread-safe.
class WaitingCalls {
 public:
  /// Whether a call may come in, and at what price.
  struct Room {
    bool refused = false;
    bool held = false;    ///< it waits outside of the queue
    std::string limit{};  ///< that is reached; empty: none is
    /// Unless it is refused: who goes so that it may come.
    std::vector<const BatchCall*> giving_way{};
  };

  /// Adopts the bounds. `is_live` is null before there is a host, and then no call waits.
  void configure(const BatchOptions& options, const BatchGroup::IsLive& is_live);
  /// The name of this node.
  void be_of(std::string node) { group_.be_of(std::move(node)); }
  /// The group has changed.
  void refresh(const BatchGroup::IsLive& is_live) { group_.refresh(is_live); }

  /// `coming` are the bytes of calls that were let in, and are not here yet. `let_in`: this one was
  /// one of them, so that its bytes have their place.
  [[nodiscard]] Room room_for(const BatchCall& call, std::size_t coming, bool let_in) const;
  /// Queues a call; returns its lane.
  BatchLane& add(std::unique_ptr<BatchCall> call);
  /// Holds a call back.
  void hold(std::unique_ptr<BatchCall> call) { held_.add(std::move(call)); }
  /// Queues those that are held back, as long as there is room.
  void admit_held();

  /// Takes calls of a lane out for a batch, as BatchLane::take does.
  [[nodiscard]] BatchCalls take(BatchLane& lane, std::size_t rows, std::size_t max_overtaking);
  /// Takes out all calls that `which` holds for.
  template <class Which>
  [[nodiscard]] BatchCalls remove_if(const Which& which) {
    BatchCalls gone;
    queue_.remove_if(which, gone);
    left_queue(gone);
    held_.remove_if(which, gone);
    return gone;
  }
  /// Takes out the calls whose deadline is not after `now`, unless they are pinned.
  [[nodiscard]] BatchCalls remove_expired(TimePoint now);
  /// What waits now is not to wait for more.
  void flush();

  template <class Use>
  void for_each_lane(const Use& use) {
    queue_.for_each_lane(use);
  }

  /// As BatchQueue says.
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
  /// Of all of them.
  [[nodiscard]] std::size_t rows() const noexcept { return queue_.rows() + held_.rows(); }
  /// The same.
  [[nodiscard]] std::size_t bytes() const noexcept { return queue_.bytes() + held_.bytes(); }
  /// No call's deadline is before.
  [[nodiscard]] TimePoint earliest_deadline() const noexcept {
    return std::min(queue_.earliest_deadline(), held_.earliest_deadline());
  }

 private:
  void left_queue(const BatchCalls& calls) {
    for (const auto& call : calls)
      group_.remove(*call);
  }

  std::size_t max_rows_ = std::numeric_limits<std::size_t>::max();  // of the queue; and held ones
  std::size_t max_bytes_ = std::numeric_limits<std::size_t>::max();
  bool holds_ = false;  // OnFull::wait
  BatchQueue queue_;
  HeldCalls held_;
  BatchGroup group_;
};

}  // namespace batchrpc::detail
