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

}  // namespace

// A batcher's task on its executor. If it is destroyed without having run, the executor or its node
// is gone, and the batcher ends.
class Aggregator::Posted {
 public:
  Posted(std::weak_ptr<Aggregator> core, PostedTask task, AsyncMutex::Guard guard)
      : core_(std::move(core)), task_(task), guard_(std::move(guard)) {}
  Posted(Posted&& other) noexcept
      : core_(std::move(other.core_)), task_(other.task_), guard_(std::move(other.guard_)) {}
  Posted& operator=(Posted&&) = delete;
  ~Posted() {
    if (const auto core = core_.lock())
      core->end("the executor of the batcher's handler has stopped");
  }
  void operator()() {
    const auto core = core_.lock();
    core_.reset();
    const OutsideOfCalls none;
    if (core) (core.get()->*task_)(std::move(guard_));
  }

 private:
  std::weak_ptr<Aggregator> core_;
  PostedTask task_;
  AsyncMutex::Guard guard_;
};

Aggregator::Aggregator(BatchOptions options, BatchWork work)
    : work_(std::move(work)),
      options_(std::make_shared<const BatchOptions>(std::move(options))),
      starts_(*options_),
      accumulation_(static_cast<bool>(work_.accumulate)) {
  waiting_.configure(*options_, nullptr);
  accumulation_.configure(*options_);
}

Aggregator::~Aggregator() {
  if (!host_) return;  // no statistics were requested either
  timer_.cancel(host_.loop());
  host_.forget_callbacks();
  let_all_transfers_come();
  end("the batcher was destroyed");
  host_.report_last([this] { return metrics_of(statistics()); });
}

// --- without the mutex: runs the program's code

// This may drop the last handle; then nothing of this object is used any more.
void Aggregator::perform(Deferred&& todo) {
  for (const auto& gate : todo.gates)
    gate->open();
  if (todo.begins_here) {
    const OutsideOfCalls none;
    begin({});
  }
  if (todo.accumulates) post_exclusively(&Aggregator::accumulate);
  const auto self = todo.begins > 1 ? shared_from_this() : nullptr;
  for (; todo.begins > 0; --todo.begins)
    post_exclusively(&Aggregator::begin);
  for (Promise<void>& promise : todo.closed)
    promise.set_value();
}

void Aggregator::post_exclusively(PostedTask task) {
  const std::shared_ptr<AsyncMutex> exclusive = host_.exclusive();
  if (!exclusive) return post(task, {});
  exclusive->lock().then([weak = weak_from_this(), task](Result<AsyncMutex::Guard> guard) {
    const auto self = weak.lock();
    if (!self) return;
    if (!guard) return self->end("the batcher's exclusive mutex was destroyed: " + guard.message());
    self->post(task, std::move(*guard));
  });
}

void Aggregator::post(PostedTask task, AsyncMutex::Guard guard) {
  try {
    host_.executor().post(Posted(weak_from_this(), task, std::move(guard)));
  } catch (...) {  // NOLINT: the task that was not taken has ended the batcher
  }
}

// The calls are taken when the handler begins, so that calls arriving until then are included.
void Aggregator::begin(AsyncMutex::Guard guard) {
  Dropped expired;
  TakenBatch batch;
  Deferred todo;
  {
    const std::lock_guard lock(mutex_);
    const TimePoint now = host_.now();
    expired = drop_expired(now);
    batch = take_batch(now);
    if (batch.calls.empty()) {  // the calls were dropped
      start_if_due(now, todo);
      report_if_closed(todo);
    } else if (options_->parallelism > 1) {
      start_if_due(now, todo);
    } else {
      let_transfers_come(todo);
    }
  }
  tell_and_perform(std::move(todo), std::move(expired));
  if (!batch.calls.empty()) run(std::move(batch), std::move(guard));
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
  Deferred todo;
  {
    const std::lock_guard lock(mutex_);
    const TimePoint now = host_.now();
    counts_.ended(outcome, started, now, arrivals);
    starts_.ended(started, now, rows, waiting_.rows(), arrivals);
    start_if_due(now, todo);
    if (!closing_.is_open()) report_if_closed(todo);
  }
  perform(std::move(todo));
}

void Aggregator::look_again() {
  Dropped expired;
  Deferred todo;
  {
    const std::lock_guard lock(mutex_);
    timer_.fired();
    const TimePoint now = host_.now();
    expired = drop_expired(now);
    start_if_due(now, todo);
  }
  tell_and_perform(std::move(todo), std::move(expired));
}

// --- with the mutex: when batches start

bool Aggregator::waits_for_room() const noexcept {
  return waiting_.held_rows() > 0 || transfers_.any_held();
}

// When a deadline passes, or a transfer for which others wait may have stalled.
TimePoint Aggregator::next_end() const {
  const TimePoint stall =
      waits_for_room() ? transfers_.next_stall(transfer_room()) : TimePoint::max();
  return std::min(waiting_.earliest_deadline(), stall);
}

// A call lacks room. If nothing else will free any, the waiting calls stop waiting for more rows,
// which would find no room.
void Aggregator::flush_if_full(TimePoint now) {
  const bool accumulates =
      accumulation_.current() != nullptr || accumulation_.next(waiting_, starts_) != nullptr;
  if (!starts_.is_idle() || transfers_.any_moving(transfer_room()) || accumulates) return;
  starts_.flush_oldest(waiting_, now);
}

// `may_run_here`: a complete batch need not wait until the calling thread has read its remaining
// messages.
void Aggregator::start_if_due(TimePoint now, Deferred& todo, bool may_run_here) {
  let_transfers_come(todo);
  if (waits_for_room()) flush_if_full(now);
  if (accumulation_.is_used()) {
    const bool any = !starts_.any_starting() && accumulation_.next(waiting_, starts_) != nullptr;
    if (accumulation_.has_task() || any) {
      todo.accumulates = accumulation_.needs_task();
      arm_timer_at(next_end());
      return;
    }
  }
  const BatchStarts::Starting starting = starts_.start(waiting_, now);
  // Everything due at `now` has been handled.
  arm_timer_at(std::min(next_end(), starts_.next_due(waiting_, now)));
  todo.begins_here =
      may_run_here && starting.complete && starting.batches == 1 && !host_.exclusive();
  if (!todo.begins_here) todo.begins = starting.batches;
}

// Empty if the calls are gone or must not run any more.
TakenBatch Aggregator::take_batch(TimePoint now) {
  TakenBatch batch = starts_.take(waiting_, now);
  if (batch.calls.empty()) return batch;
  batch.options = options_;
  batch.executor = host_.shared_executor();
  if (options_->order_by_peer) sort_by_peer(batch.calls);
  counts_.started(batch);
  waiting_.admit_held();
  return batch;
}

void Aggregator::arm_timer_at(TimePoint when) {
  if (!timer_.needs(when)) return;
  timer_.set(host_.loop(), when, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->look_again();
  });
}

void Aggregator::report_if_closed(Deferred& todo) {
  let_transfers_come(todo);
  const bool nothing_runs = starts_.running() == 0 && accumulation_.current() == nullptr;
  todo.closed = closing_.take_waiters(nothing_runs && waiting_.empty());
}

}  // namespace batchrpc::detail
