#include "batch/aggregator.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "batchrpc/batch/outside_of_calls.hpp"
#include "batchrpc/batch/recorded_batch.hpp"

namespace batchrpc::detail {
namespace {

void sort_by_peer(BatchCalls& calls) {
  const auto order = [](const BatchCall& call) {
    const PeerIdentity* const peer = call.caller.get();
    return std::tuple(peer != nullptr ? peer->rank : -2,
                      peer != nullptr ? std::string_view(peer->name) : std::string_view(),
                      call.place);
  };
  std::sort(calls.begin(), calls.end(),
            [&](const auto& a, const auto& b) { return order(*a) < order(*b); });
}

// Follows changes within some ten batches.
Duration average(Duration before, Duration latest) {
  return before == Duration::zero() ? latest : before + (latest - before) / 8;
}

}  // namespace

// A task of the batcher's on its executor. One that is destroyed without having run ends the
// batcher: then the executor, or its node, is gone.
class Aggregator::Posted {
 public:
  Posted(std::weak_ptr<Aggregator> core, PostedTask task, std::uint64_t epoch,
         AsyncMutex::Guard guard)
      : core_(std::move(core)), task_(task), epoch_(epoch), guard_(std::move(guard)) {}
  Posted(Posted&& other) noexcept
      : core_(std::move(other.core_)),
        task_(other.task_),
        epoch_(other.epoch_),
        guard_(std::move(other.guard_)) {}
  Posted& operator=(Posted&&) = delete;
  ~Posted() {
    if (const auto core = core_.lock()) core->end("what ran the batcher's handler is gone");
  }
  void operator()() {
    const auto core = core_.lock();
    core_.reset();
    const OutsideOfCalls none;
    if (core) (core.get()->*task_)(std::move(guard_), epoch_);
  }

 private:
  std::weak_ptr<Aggregator> core_;
  PostedTask task_;
  std::uint64_t epoch_;
  AsyncMutex::Guard guard_;
};

Aggregator::Aggregator(BatchOptions options, BatchWork work)
    : work_(std::move(work)), options_(std::make_shared<const BatchOptions>(std::move(options))) {
  adapt(BatchOptions());
}

Aggregator::~Aggregator() {
  if (!host_) return;  // and nobody asks for figures
  if (timer_ != 0) host_->loop()->cancel(timer_);
  for (const std::uint64_t handler : {change_handler_, end_handler_}) {
    if (handler != 0) host_->forget(handler);
  }
  let_all_transfers_come();
  end("the batcher was destroyed");
  if (asking_) asking_->forget_metrics(figures_number_, metrics_of(statistics()));
}

// --- when batches start

std::optional<BatchReason> Aggregator::due(const BatchLane& lane, TimePoint now) const {
  auto reason = triggers_.due(lane, group_.complete(), now);
  if (!reason && draining_) reason = BatchReason::flush;
  return reason;
}

// How many there are; and whether none of them would take another row.
std::size_t Aggregator::due_batches(TimePoint now, bool& complete) {
  std::size_t batches = 0;
  complete = true;
  queue_.for_each_lane([&](BatchLane& lane) {
    const auto reason = due(lane, now);
    if (!reason) return;
    batches += triggers_.batches(lane.rows());
    complete = complete && (*reason == BatchReason::size || *reason == BatchReason::preferred ||
                            *reason == BatchReason::all);
  });
  return batches;
}

// Of those that are due: the one with the highest priority, or that was passed over for too many.
Aggregator::DueLane Aggregator::next_lane(TimePoint now) {
  DueLane best;
  const auto rank = [this](const BatchLane& lane) {
    const bool passed = lane.passed >= options_->max_overtaking;
    return std::tuple(!passed, passed ? 0 : ~lane.priority(), lane.oldest().number);
  };
  queue_.for_each_lane([&](BatchLane& lane) {
    const auto reason = due(lane, now);
    if (!reason) return;
    if (best.lane == nullptr || rank(lane) < rank(*best.lane)) best = {&lane, *reason};
  });
  return best;
}

bool Aggregator::has_free_slot() const noexcept {
  return starting_ + running_ < options_->parallelism;
}

bool Aggregator::waits_for_room() const noexcept {
  return held_.rows() > 0 || !held_transfers_.empty();
}

// A call lacks room: what waits does not wait for rows that itself leaves none for, when nothing
// else makes any.
void Aggregator::flush_if_full(TimePoint now) {
  const bool accumulates =
      work_.accumulate && (accumulating_ != nullptr || next_to_accumulate() != nullptr);
  const bool is_idle = !paused_ && running_ == 0 && transfers_ == 0 && !accumulates;
  if (!is_idle) return;
  BatchLane* oldest = nullptr;
  bool any_due = false;
  queue_.for_each_lane([&](BatchLane& lane) {
    any_due = any_due || due(lane, now);
    if (oldest == nullptr || lane.oldest().number < oldest->oldest().number) oldest = &lane;
  });
  if (oldest != nullptr && !any_due) oldest->flush(BatchReason::full);
}

// Lets go of the lock. `may_run_here`: a batch that is complete need not wait for the messages
// which the calling thread has yet to read.
void Aggregator::start_if_due(Lock& lock, TimePoint now, bool may_run_here) {
  let_transfers_come();
  if (waits_for_room()) flush_if_full(now);
  if (work_.accumulate) {
    const bool accumulates = starting_ == 0 && next_to_accumulate() != nullptr;
    if (accumulation_posted_ || accumulates) return accumulate_if_due(lock);
  }
  std::size_t starts = 0;
  bool complete = false;
  if (!paused_ && !queue_.empty() && has_free_slot()) {
    const std::size_t due = due_batches(now, complete);
    while (has_free_slot() && starting_ < due) {
      ++starting_;
      ++starts;
    }
  }
  arm_timer(now);
  const auto exclusive = starts > 0 ? options_->exclusive : nullptr;
  const std::uint64_t epoch = epoch_;
  // The first may drop the last handle.
  const auto self = starts > 1 ? shared_from_this() : nullptr;
  lock.unlock();
  if (may_run_here && complete && starts == 1 && !exclusive) return begin_here(epoch);
  for (; starts > 0; --starts)
    post_exclusively(&Aggregator::begin, epoch, exclusive);
}

void Aggregator::post_exclusively(PostedTask task, std::uint64_t epoch,
                                  const std::shared_ptr<AsyncMutex>& exclusive) {
  if (!exclusive) return post(task, epoch, {});
  exclusive->lock().then([weak = weak_from_this(), task, epoch](Result<AsyncMutex::Guard> guard) {
    const auto self = weak.lock();
    if (!self || !self->is_current(epoch)) return;
    if (!guard) return self->end("the batcher's exclusive mutex is gone: " + guard.message());
    self->post(task, epoch, std::move(*guard));
  });
}

bool Aggregator::is_current(std::uint64_t epoch) const {
  const Lock lock(mutex_);
  return epoch == epoch_;
}

void Aggregator::post(PostedTask task, std::uint64_t epoch, AsyncMutex::Guard guard) {
  try {
    executor_->post(Posted(weak_from_this(), task, epoch, std::move(guard)));
  } catch (...) {  // NOLINT: the task that was not taken has ended the batcher
  }
}

void Aggregator::begin_here(std::uint64_t epoch) {
  const OutsideOfCalls none;
  begin({}, epoch);
}

// The calls are taken when the handler begins, so that those which come meanwhile go along.
void Aggregator::begin(AsyncMutex::Guard guard, std::uint64_t epoch) {
  Dropped expired{{}, &BatchStatistics::expired, nullptr};
  TakenBatch batch;
  {
    Lock lock(mutex_);
    if (epoch != epoch_) return;
    --starting_;
    const TimePoint now = host_->loop()->now();
    drop_expired(now, expired);
    const bool may_run = !paused_ && running_ < options_->parallelism;  // they may have changed
    const DueLane next = may_run ? next_lane(now) : DueLane();
    if (next.lane != nullptr) {
      batch.reason = next.reason;
      const bool all = group_.complete();
      // What was accumulated is this batch's, whatever its size is now.
      const std::size_t rows =
          std::max(triggers_.cut(next.lane->rows()), queue_.accumulated_rows());
      // What preferred sizes cut off was due as well.
      if (batch.reason == BatchReason::min_size) next.lane->flush(BatchReason::min_size);
      queue_.take(*next.lane, rows, options_->max_overtaking, batch.calls);
      // Nothing more is to come for the other rows, either, whatever their keys are.
      if (all) queue_.for_each_lane([](BatchLane& other) { other.flush(BatchReason::all); });
      left(batch.calls);
      for (const auto& call : batch.calls)
        batch.rows += call->rows;
      batch.started = now;
      batch.options = options_;
      batch.executor = executor_;
      if (options_->order_by_peer) sort_by_peer(batch.calls);
      counts_.started(batch);
      ++running_;
      admit_held();
      let_transfers_come();
      if (options_->parallelism > 1) start_if_due(lock, now);
    } else {  // or the calls were dropped
      start_if_due(lock, now);
    }
  }
  fail(expired);
  if (!batch.calls.empty()) return run(std::move(batch), std::move(guard));
  Lock lock(mutex_);
  report_if_closed(lock);
}

void Aggregator::run(TakenBatch batch, AsyncMutex::Guard guard) {
  std::vector<TimePoint> arrivals;
  arrivals.reserve(batch.calls.size());
  for (const auto& call : batch.calls)
    arrivals.push_back(call->arrived);
  const TimePoint started = batch.started;
  const std::size_t rows = batch.rows;
  BatchEnd end = work_.run(std::move(batch));
  if (const auto* outcome = std::get_if<BatchOutcome>(&end)) {
    guard = {};
    return ended(*outcome, started, rows, arrivals);
  }
  std::get<Future<BatchOutcome>>(end).then(
      [self = shared_from_this(), started, rows, arrivals = std::move(arrivals),
       guard = std::move(guard)](const Result<BatchOutcome>& outcome) mutable {
        guard = {};
        self->ended(outcome ? *outcome : BatchOutcome{.failed = rows}, started, rows, arrivals);
      });
}

void Aggregator::ended(const BatchOutcome& outcome, TimePoint started, std::size_t rows,
                       std::span<const TimePoint> arrivals) {
  Lock lock(mutex_);
  const TimePoint now = host_->loop()->now();
  counts_.ended(outcome, started, now, arrivals);
  batch_time_ = average(batch_time_, now - started);
  if (adaptive_) {
    adaptive_->ended(started, now, rows, queue_.rows() + held_.rows(), arrivals);
    adopt_choice();
  }
  --running_;
  const bool is_closing = !closed_.empty();
  start_if_due(lock, now);
  if (!is_closing) return;
  lock.lock();
  report_if_closed(lock);
}

// One timer for all: set early, it looks again, and is set anew. What is due at `now` has been seen
// to.
void Aggregator::arm_timer(TimePoint now) {
  TimePoint when = std::min(queue_.earliest_deadline(), held_.earliest_deadline());
  if (!paused_ && has_free_slot()) {
    queue_.for_each_lane([&](const BatchLane& lane) {
      const TimePoint at = triggers_.due_at(lane);
      if (at > now) when = std::min(when, at);
    });
  }
  arm_timer_at(when);
}

void Aggregator::arm_timer_at(TimePoint when) {
  if (when == TimePoint::max() || (timer_ != 0 && timer_at_ <= when)) return;
  if (timer_ != 0) host_->loop()->cancel(timer_);
  timer_at_ = when;
  timer_ = host_->loop()->schedule(when, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->look_again();
  });
}

void Aggregator::look_again() {
  Dropped expired{{}, &BatchStatistics::expired, nullptr};
  {
    Lock lock(mutex_);
    timer_ = 0;
    const TimePoint now = host_->loop()->now();
    drop_expired(now, expired);
    start_if_due(lock, now);
  }
  fail(expired);
}

}  // namespace batchrpc::detail
