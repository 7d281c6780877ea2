#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "batch/schedule_call.hpp"

namespace batchrpc::test {

/// What a batcher is to do, said in the simplest way: it looks through all that waits whenever it
/// is asked, and is told of everything that happens. The batcher is held against it.
class BatchModel {
 public:
  using Complain = std::function<void(const std::string&)>;
  using IsLive = std::function<bool(std::string_view name)>;
  using IsCurrent = std::function<bool(const PeerIdentity& peer)>;

  BatchModel(BatchOptions options, IsLive is_live, IsCurrent is_current, Complain complain);

  // What the batcher is told.
  void set_options(const BatchOptions& options);
  void flush();
  void pause() { paused_ = paused_ || !closed_; }
  void resume() { paused_ = false; }
  void drain();
  /// Closed without draining: all that waits is dropped.
  void end();
  void group_changed();
  void cancel(ScheduledCall& call);

  /// What is to become of a call that arrives.
  struct Verdict {
    std::optional<ErrorCode> refused{};
    /// Those of one of these give way, where there are any; or, if it may be, the call is refused.
    std::vector<ScheduledCalls> ways{};
    bool may_be_refused = false;
  };
  [[nodiscard]] Verdict judge(const ScheduledCall& call, TimePoint now);
  /// Those that gave way have been dropped. Returns whether the call is held.
  bool enter(ScheduledCall& call, const Verdict& verdict);

  /// Calls that leave without having run.
  void drop(ScheduledCall& call, Fate fate, ErrorCode error);
  void expire(TimePoint now);
  void admit_held();

  /// The batch that must start now.
  ModelBatch& begin(TimePoint now);
  /// One that does not wait for more, since a call found no room and nothing else made any. When
  /// exactly that is seen is the batcher's to choose.
  ModelBatch& begin_for_room(int key, TimePoint now);
  /// A call of a batch is completed. After the last one the batch is over.
  void completed(ScheduledCall& call);
  /// The call that a reducer must take now; null when there is none.
  [[nodiscard]] ScheduledCall* next_to_accumulate() const;

  /// What a batcher with a latency target has chosen.
  struct InForce {
    std::size_t size = 1;
    std::size_t min_size = 1;
    Duration wait{};
  };
  void choose(const InForce& choice) { in_force_ = choice; }
  [[nodiscard]] const InForce& in_force() const { return in_force_; }

  [[nodiscard]] const BatchOptions& options() const { return options_; }
  [[nodiscard]] const ScheduledCalls& queue() const { return queue_; }
  [[nodiscard]] std::size_t held_rows() const;
  [[nodiscard]] std::size_t bytes() const;
  [[nodiscard]] std::size_t running() const { return running_.size(); }
  [[nodiscard]] bool paused() const { return paused_; }
  [[nodiscard]] bool closed() const { return closed_; }
  [[nodiscard]] bool is_empty() const {
    return queue_.empty() && held_.empty() && running_.empty();
  }
  /// Whether rows wait that should run.
  [[nodiscard]] bool is_late(TimePoint now) const;
  /// Whether calls are held while nothing runs that would make room for them.
  [[nodiscard]] bool is_stuck() const;
  /// Whether a call waits whose deadline has passed.
  [[nodiscard]] bool has_expired(TimePoint now) const;
  /// Calls whose fate is known, to be told at once.
  ScheduledCalls& unsettled() { return unsettled_; }

 private:
  [[nodiscard]] bool is_grouped() const { return !options_.all_of.empty(); }
  [[nodiscard]] bool is_complete() const;
  [[nodiscard]] ScheduledCalls lane(int key) const;
  [[nodiscard]] std::set<int> keys() const;
  [[nodiscard]] std::optional<BatchReason> due(const ScheduledCalls& lane, TimePoint now) const;
  [[nodiscard]] std::optional<int> next_key(TimePoint now) const;
  [[nodiscard]] std::size_t cut(std::size_t rows) const;
  [[nodiscard]] ScheduledCall& next_of(const ScheduledCalls& lane) const;
  ModelBatch& start(int key, BatchReason reason, TimePoint now);
  void take(ModelBatch& batch, int key, std::size_t rows);
  void enqueue(ScheduledCall& call);
  void flush_queue(BatchReason why);
  void leave_queue(ScheduledCall& call);
  [[nodiscard]] ScheduledCalls held_calls() const;
  void find_bytes(const ScheduledCall& call, Verdict& verdict) const;
  void find_rows(const ScheduledCall& call, Verdict& verdict) const;

  BatchOptions options_;
  std::shared_ptr<const BatchOptions> shared_options_;  // the same
  const IsLive is_live_;
  const IsCurrent is_current_;
  const Complain complain_;
  InForce in_force_;
  ScheduledCalls queue_;             // in the order in which they came to it
  std::deque<ScheduledCalls> held_;  // of each caller, in the order of their turns
  std::vector<std::unique_ptr<ModelBatch>> running_;
  std::vector<std::unique_ptr<ModelBatch>> over_;
  std::map<int, std::size_t> passed_;  // by key: calls of other keys that were preferred
  ScheduledCalls unsettled_;
  bool lacked_room_ = false;  // a call did, since the queue was last empty
  bool paused_ = false;
  bool draining_ = false;
  bool closed_ = false;
};

}  // namespace batchrpc::test
