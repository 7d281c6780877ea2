#include "batch/aggregator.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "batch/options_check.hpp"
#include "batchrpc/base/error.hpp"

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
  Posted(std::weak_ptr<Aggregator> core, PostedTask task, AsyncMutex::Guard guard)
      : core_(std::move(core)), task_(task), guard_(std::move(guard)) {}
  Posted(Posted&& other) noexcept
      : core_(std::move(other.core_)), task_(other.task_), guard_(std::move(other.guard_)) {}
  Posted& operator=(Posted&&) = delete;
  ~Posted() {
    if (const auto core = core_.lock()) core->end("what ran the batcher's handler is gone");
  }
  void operator()() {
    const auto core = core_.lock();
    core_.reset();
    if (core) (core.get()->*task_)(std::move(guard_));
  }

 private:
  std::weak_ptr<Aggregator> core_;
  PostedTask task_;
  AsyncMutex::Guard guard_;
};

Aggregator::Aggregator(BatchOptions options, BatchWork work)
    : work_(std::move(work)), options_(std::make_shared<const BatchOptions>(std::move(options))) {
  if (options_->latency_target.latency > Duration::zero()) {
    adaptive_.emplace(options_->latency_target, options_->max_size, options_->parallelism);
  }
  adopt_choice();
}

Aggregator::~Aggregator() {
  if (!host_) return;
  if (timer_ != 0) host_->loop->cancel(timer_);
  for (const std::uint64_t handler : {change_handler_, end_handler_}) {
    if (handler != 0) host_->forget(handler);
  }
  end("the batcher was destroyed");
}

void Aggregator::adopt_choice() {
  triggers_ = BatchTriggers(*options_, adaptive_ ? &adaptive_->choice() : nullptr);
}

std::shared_ptr<const BatchOptions> Aggregator::options() const {
  const Lock lock(mutex_);
  return options_;
}

void Aggregator::set_options(BatchOptions options) {
  check_options(options, work_);
  auto changed = std::make_shared<const BatchOptions>(std::move(options));
  Lock lock(mutex_);
  check_change(*options_, *changed);
  if (host_) check_group(*changed, *host_);
  const auto before = std::exchange(options_, std::move(changed));
  const LatencyTarget& target = options_->latency_target;
  if (target.latency == Duration::zero()) {
    adaptive_.reset();
  } else if (!adaptive_ || target.latency != before->latency_target.latency ||
             target.percentile != before->latency_target.percentile ||
             options_->max_size != before->max_size ||
             options_->parallelism != before->parallelism) {
    adaptive_.emplace(target, options_->max_size, options_->parallelism);
  }
  adopt_choice();
  if (!host_) return;
  group_.configure(*options_, host_->is_live, [this](const auto& add) { queue_.for_each(add); });
  admit_held();
  start_if_due(lock, host_->loop->now());
}

void Aggregator::expect(const std::string& peer) {
  const Lock lock(mutex_);
  if (!options_->all_callers) {
    throw InvalidArgument("a batcher expects a peer only with BatchOptions::all_callers");
  }
  if (host_) check_peer("expect", peer, *host_);
  group_.expect(
      peer, host_ ? host_->is_live : [](std::string_view) { return false; });
}

void Aggregator::flush() {
  Lock lock(mutex_);
  if (paused_ || queue_.empty()) return;
  queue_.for_each_lane([](BatchLane& lane) { lane.flush(); });
  start_if_due(lock, host_->loop->now());
}

void Aggregator::pause() {
  const Lock lock(mutex_);
  paused_ = true;
}

void Aggregator::resume() {
  Lock lock(mutex_);
  if (!std::exchange(paused_, false) || !host_) return;
  start_if_due(lock, host_->loop->now());
}

Future<void> Aggregator::close(BatchClose how) {
  Promise<void> closed;
  Future<void> future = closed.get_future();
  {
    Lock lock(mutex_);
    closing_.push_back(std::move(closed));
    if (closed_.empty()) closed_ = "the batcher is closed";
    if (how == BatchClose::drain && host_) {
      draining_ = true;
      paused_ = false;
      start_if_due(lock, host_->loop->now());
    }
  }
  if (how == BatchClose::fail) end("the batcher is closed");
  Lock lock(mutex_);
  tell_if_closed(lock);
  return future;
}

// Lets go of the lock.
void Aggregator::tell_if_closed(Lock& lock) {
  let_transfers_come();
  const bool idle = running_ == 0 && accumulating_ == nullptr;
  const bool is_over = !closed_.empty() && idle && queue_.empty() && held_.rows() == 0;
  std::vector<Promise<void>> told;
  if (is_over) told.swap(closing_);
  lock.unlock();
  for (Promise<void>& promise : told)
    promise.set_value();
}

// --- when batches start

std::optional<BatchReason> Aggregator::due(const BatchLane& lane, TimePoint now) const {
  auto reason = triggers_.due(lane, group_.complete(), now);
  if (!reason && draining_) reason = BatchReason::flush;
  return reason;
}

std::size_t Aggregator::due_batches(TimePoint now) {
  std::size_t batches = 0;
  queue_.for_each_lane([&](BatchLane& lane) {
    if (due(lane, now)) batches += triggers_.batches(lane.rows());
  });
  return batches;
}

// Of those that are due: the one with the highest priority, or that was passed over for too many.
BatchLane* Aggregator::next_lane(TimePoint now) {
  BatchLane* best = nullptr;
  const auto rank = [this](const BatchLane& lane) {
    const bool passed = lane.passed >= options_->max_overtaking;
    return std::tuple(!passed, passed ? 0 : -lane.priority(), lane.oldest().number);
  };
  queue_.for_each_lane([&](BatchLane& lane) {
    if (!due(lane, now)) return;
    if (best == nullptr || rank(lane) < rank(*best)) best = &lane;
  });
  return best;
}

// Lets go of the lock.
void Aggregator::start_if_due(Lock& lock, TimePoint now) {
  let_transfers_come();
  if (work_.accumulate) {
    if (accumulation_posted_ || next_to_accumulate() != nullptr) return accumulate_if_due(lock);
  }
  std::size_t starts = 0;
  const bool may_start =
      !paused_ && !queue_.empty() && starting_ + running_ < options_->parallelism;
  if (may_start) {
    const std::size_t due = due_batches(now);
    while (starting_ + running_ < options_->parallelism && starting_ < due) {
      ++starting_;
      ++starts;
    }
  }
  arm_timer(now);
  const auto exclusive = starts > 0 ? options_->exclusive : nullptr;
  lock.unlock();
  for (; starts > 0; --starts)
    post_exclusively(&Aggregator::begin, exclusive);
}

void Aggregator::post_exclusively(PostedTask task, const std::shared_ptr<AsyncMutex>& exclusive) {
  if (!exclusive) return post(task, {});
  exclusive->lock().then([weak = weak_from_this(), task](Result<AsyncMutex::Guard> guard) {
    const auto self = weak.lock();
    if (!self) return;
    if (!guard) return self->end("the batcher's exclusive mutex is gone: " + guard.message());
    self->post(task, std::move(*guard));
  });
}

void Aggregator::post(PostedTask task, AsyncMutex::Guard guard) {
  try {
    executor_->post(Posted(weak_from_this(), task, std::move(guard)));
  } catch (...) {  // NOLINT: the task that was not taken has ended the batcher
  }
}

// A task that was posted before there was an exclusive mutex is posted again, to have it.
bool Aggregator::lacks_mutex(PostedTask task, const AsyncMutex::Guard& guard, Lock& lock) {
  if (!options_->exclusive || guard) return false;
  const auto exclusive = options_->exclusive;
  lock.unlock();
  post_exclusively(task, exclusive);
  return true;
}

// The calls are taken when the handler begins, so that those which come meanwhile go along.
void Aggregator::begin(AsyncMutex::Guard guard) {
  Dropped expired{{}, &BatchStatistics::expired, nullptr};
  TakenBatch batch;
  {
    Lock lock(mutex_);
    if (lacks_mutex(&Aggregator::begin, guard, lock)) return;
    --starting_;
    const TimePoint now = host_->loop->now();
    drop_expired(now, expired);
    const bool may_run = !paused_ && running_ < options_->parallelism;  // they may have changed
    BatchLane* const lane = may_run ? next_lane(now) : nullptr;
    if (lane != nullptr) {
      batch.reason = *due(*lane, now);
      const std::size_t rows = std::max(triggers_.cut(lane->rows()), accumulated_rows());
      queue_.take(*lane, rows, options_->max_overtaking, batch.calls);
      // Nothing more is to come for the rows of other keys, either.
      if (batch.reason == BatchReason::all) {
        queue_.for_each_lane([](BatchLane& other) { other.flush(); });
      }
      left(batch.calls);
      for (const auto& call : batch.calls)
        batch.rows += call->rows;
      batch.started = now;
      batch.options = options_;
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
  tell_if_closed(lock);
}

void Aggregator::run(TakenBatch batch, AsyncMutex::Guard guard) {
  std::vector<TimePoint> arrivals;
  arrivals.reserve(batch.calls.size());
  for (const auto& call : batch.calls)
    arrivals.push_back(call->arrived);
  const TimePoint started = batch.started;
  const std::size_t rows = batch.rows;
  work_.run(std::move(batch))
      .then([self = shared_from_this(), started, rows, arrivals = std::move(arrivals),
             guard = std::move(guard)](const Result<BatchOutcome>& outcome) mutable {
        guard = {};
        self->ended(outcome ? *outcome : BatchOutcome{.failed = rows}, started, rows,
                    std::move(arrivals));
      });
}

void Aggregator::ended(const BatchOutcome& outcome, TimePoint started, std::size_t rows,
                       std::vector<TimePoint> arrivals) {
  Lock lock(mutex_);
  const TimePoint now = host_->loop->now();
  std::vector<Duration> latencies;
  latencies.reserve(arrivals.size());
  for (const TimePoint arrived : arrivals)
    latencies.push_back(now - arrived);
  counts_.ended(outcome, now - started, latencies);
  batch_time_ = average(batch_time_, now - started);
  if (adaptive_) {
    adaptive_->ended(started, now, rows, queue_.rows() + held_.rows(), latencies);
    adopt_choice();
  }
  --running_;
  start_if_due(lock, now);
  lock.lock();
  tell_if_closed(lock);
}

// One timer for all: set early, it looks again, and is set anew. What is due at `now` has been seen
// to.
void Aggregator::arm_timer(TimePoint now) {
  TimePoint when = std::min(queue_.earliest_deadline(), held_.earliest_deadline());
  if (!paused_ && starting_ + running_ < options_->parallelism) {
    queue_.for_each_lane([&](const BatchLane& lane) {
      const TimePoint at = triggers_.due_at(lane);
      if (at > now) when = std::min(when, at);
    });
  }
  if (when == TimePoint::max() || (timer_ != 0 && timer_at_ <= when)) return;
  if (timer_ != 0) host_->loop->cancel(timer_);
  timer_at_ = when;
  timer_ = host_->loop->schedule(when, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->look_again();
  });
}

void Aggregator::look_again() {
  Dropped expired{{}, &BatchStatistics::expired, nullptr};
  {
    Lock lock(mutex_);
    timer_ = 0;
    const TimePoint now = host_->loop->now();
    drop_expired(now, expired);
    start_if_due(lock, now);
  }
  fail(expired);
}

// --- what is told

BatchStatistics Aggregator::statistics() const {
  const Lock lock(mutex_);
  BatchStatistics now = counts_.totals;
  now.rows_per_second = host_ ? counts_.rows_per_second(host_->loop->now()) : 0;
  now.queued = queue_.rows();
  now.queued_bytes = queue_.bytes() + held_.bytes();
  now.held = held_.rows();
  now.running = running_;
  now.wait = triggers_.wait();
  now.size = triggers_.size();
  now.min_size = triggers_.min_size();
  return now;
}

}  // namespace batchrpc::detail
