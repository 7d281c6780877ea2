#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "batch/caller_shares.hpp"
#include "batchrpc/batch/batch_row.hpp"

namespace batchrpc::detail {

/// The waiting calls of one key: higher priority first, then in order of arrival. At most
/// `max_overtaking` calls of higher priority overtake a call; then it goes first.
class BatchLane {
 public:
  explicit BatchLane(std::string key) : key_(std::move(key)) {}

  void add(std::unique_ptr<BatchCall> call);
  /// Takes calls from the front: as many as have at most `rows` rows together, but at least one.
  void take(std::size_t rows, std::size_t max_overtaking, BatchCalls& to);
  /// Moves the calls for which `which` is true to `to`.
  template <class Which>
  void remove_if(const Which& which, BatchCalls& to);

  [[nodiscard]] const std::string& key() const noexcept { return key_; }
  [[nodiscard]] bool empty() const noexcept { return calls_ == 0; }
  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t calls() const noexcept { return calls_; }
  /// A call of the highest priority, by its index in the order of taking.
  [[nodiscard]] BatchCall& at(std::size_t index) const { return *levels_.front().calls[index]; }
  /// The call that arrived first; the lane must not be empty.
  [[nodiscard]] const BatchCall& oldest() const;
  /// The arrival time of the first call. Calls that were held back may have arrived earlier than
  /// those ahead of them.
  [[nodiscard]] TimePoint first_arrival() const {
    return early_ > 0 ? first_arrival_ : oldest().arrived;
  }
  /// The highest priority of a waiting call; the lane must not be empty.
  [[nodiscard]] int priority() const noexcept { return levels_.front().priority; }
  /// A lower bound of the calls' deadlines; TimePoint::max() if none has one.
  [[nodiscard]] TimePoint earliest_deadline() const noexcept { return earliest_deadline_; }

  /// The calls that wait now no longer wait for more rows.
  void flush(BatchReason why = BatchReason::flush) noexcept {
    flush_to_ = arrived_;
    flushed_by_ = why;
  }
  [[nodiscard]] bool is_flushed() const { return !empty() && oldest().place < flush_to_; }
  /// The reason; the lane must be flushed.
  [[nodiscard]] BatchReason flushed_by() const noexcept { return flushed_by_; }

  /// Calls `use` with each call, in the order of taking.
  template <class Use>
  void for_each(const Use& use) const {
    for (const Level& level : levels_) {
      for (const auto& call : level.calls)
        use(*call);
    }
  }

  /// How many calls of higher priority in other lanes were taken before this lane's.
  std::uint64_t passed = 0;

 private:
  struct Level {
    explicit Level(int of_priority) : priority(of_priority) {}
    Level(Level&&) = default;  // a deque only claims to be copyable
    Level& operator=(Level&&) = default;

    int priority;
    std::deque<std::unique_ptr<BatchCall>> calls;  // empty only in an empty lane's last level
  };
  [[nodiscard]] std::size_t oldest_level() const;
  std::unique_ptr<BatchCall> pop(std::size_t level);
  void drop_empty_levels();
  void left(const BatchCall& call) noexcept;
  void look_for_deadlines();
  void look_for_first_arrival();

  const std::string key_;
  std::vector<Level> levels_;  // highest priority first
  std::size_t calls_ = 0;
  std::size_t rows_ = 0;
  std::uint64_t arrived_ = 0;  // calls that ever arrived
  std::uint64_t left_ = 0;     // of these, the calls that have left
  std::uint64_t flush_to_ = 0;
  BatchReason flushed_by_ = BatchReason::flush;
  TimePoint earliest_deadline_ = TimePoint::max();
  TimePoint last_arrival_;   // of all calls that ever arrived
  std::size_t early_ = 0;    // calls that are `early`
  TimePoint first_arrival_;  // if there are any
};

/// All calls of a batcher that wait for room in a batch, in one lane for each key. Not thread-safe.
class BatchQueue {
 public:
  /// Returns the lane of the call.
  BatchLane& add(std::unique_ptr<BatchCall> call);
  void take(BatchLane& lane, std::size_t rows, std::size_t max_overtaking, BatchCalls& to);

  /// Moves the calls for which `which` is true to `to`.
  template <class Which>
  void remove_if(const Which& which, BatchCalls& to) {
    const std::size_t before = to.size();
    for (auto& [key, lane] : lanes_)
      lane.remove_if(which, to);
    for (std::size_t i = before; i < to.size(); ++i)
      count_out(*to[i]);
    drop_empty_lanes();
  }
  /// Moves the calls whose deadline is at or before `now` to `to`, unless they are pinned.
  void remove_expired(TimePoint now, BatchCalls& to);
  /// See CallerShares.
  [[nodiscard]] std::vector<const BatchCall*> who_gives_way(const BatchCall& newcomer,
                                                            CallerShares::Measure of,
                                                            std::size_t excess) const {
    return shares_.who_gives_way(*this, newcomer, of, excess);
  }

  /// For a reducer: the first call that was not accumulated; null if there is none. A reducer's
  /// calls all have one key and priority, so the accumulated ones are in front.
  [[nodiscard]] BatchCall* next_to_accumulate() const;
  /// The call was accumulated; its arguments no longer take memory.
  void accumulated(BatchCall& call);
  [[nodiscard]] std::size_t accumulated_rows() const noexcept { return accumulated_rows_; }
  [[nodiscard]] std::size_t calls_to_accumulate() const noexcept { return calls_ - accumulated_; }

  [[nodiscard]] bool empty() const noexcept { return calls_ == 0; }
  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// A lower bound of the calls' deadlines.
  [[nodiscard]] TimePoint earliest_deadline() const noexcept { return earliest_deadline_; }

  template <class Use>
  void for_each_lane(const Use& use) {
    for (auto& [key, lane] : lanes_) {
      if (!lane.empty()) use(lane);
    }
  }
  template <class Use>
  void for_each(const Use& use) const {
    for (const auto& [key, lane] : lanes_)
      lane.for_each(use);
  }

 private:
  BatchLane& lane_of(const std::string& key);
  void count_out(const BatchCall& call);
  void drop_empty_lanes();

  // Empty lanes are kept while there are few: most programs have one.
  static constexpr std::size_t kKeptLanes = 16;

  std::unordered_map<std::string, BatchLane> lanes_;
  BatchLane* last_ = nullptr;  // the last call's lane
  CallerShares shares_;
  std::uint64_t arrived_ = 0;  // calls that ever arrived
  std::size_t calls_ = 0;
  std::size_t rows_ = 0;
  std::size_t bytes_ = 0;
  std::size_t accumulated_ = 0;  // calls
  std::size_t accumulated_rows_ = 0;
  TimePoint earliest_deadline_ = TimePoint::max();  // or earlier
};

template <class Which>
void BatchLane::remove_if(const Which& which, BatchCalls& to) {
  for (Level& level : levels_) {
    std::erase_if(level.calls, [&](std::unique_ptr<BatchCall>& call) {
      if (!which(*call)) return false;
      left(*call);
      to.push_back(std::move(call));
      return true;
    });
  }
  drop_empty_levels();
  look_for_deadlines();
  look_for_first_arrival();
  if (empty()) passed = 0;  // later calls were not passed
}

}  // namespace batchrpc::detail
