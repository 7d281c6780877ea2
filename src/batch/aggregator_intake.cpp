#include <algorithm>
#include <utility>

#include "base/time.hpp"
#include "batch/aggregator.hpp"
#include "batch/lone_host.hpp"
#include "batch/options_check.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/batch/outside_of_calls.hpp"

// How calls come into an Aggregator, and how they leave it without having run.
namespace batchrpc::detail {

void Aggregator::exposed_on(const std::shared_ptr<Host>& host) {
  const Lock lock(mutex_);
  if (!host_) adopt(host);
  if (asking_) return;
  figures_number_ = host->on_metrics([weak = weak_from_this()]() -> std::optional<BatcherMetrics> {
    const auto self = weak.lock();
    if (!self) return std::nullopt;
    return metrics_of(self->statistics());
  });
  if (figures_number_ != 0) asking_ = host;
}

// The caller must hold the lock. Called once.
void Aggregator::adopt(const std::shared_ptr<Host>& host) {
  const std::weak_ptr<Aggregator> weak = weak_from_this();
  check_group(*options_, *host);
  if (options_->all_callers) {
    for (const std::string& peer : group_.expected())
      check_peer("expect", peer, *host);
  }
  host_ = host;
  executor_ = options_->executor        ? options_->executor
              : options_->short_handler ? host->loop_tasks()
                                        : host->workers();
  change_handler_ = host->on_change([weak] {
    if (const auto self = weak.lock()) self->drop_those_who_left();
  });
  end_handler_ = host->on_end([weak] {
    if (const auto self = weak.lock()) self->end("the batcher's node has ended");
  });
  group_.be_of(host->name());
  group_.configure(*options_, who_lives(), [](const auto&) {});
}

BatchGroup::IsLive Aggregator::who_lives() const {
  return [host = host_](std::string_view peer) { return host && host->is_live(peer); };
}

// A batcher without a node has a loop, and so a thread and a clock, of its own.
void Aggregator::ensure_host() {
  if (host_) return;
  check_knows_peers(*options_, false);
  adopt(std::make_shared<LoneHost>());
}

// Those that wait or are held, into an empty `gone`.
template <class Which>
void Aggregator::take_out(const Which& which, Dropped& gone) {
  queue_.remove_if(which, gone.calls);
  left(gone.calls);
  held_.remove_if(which, gone.calls);
  count(gone);
}

std::exception_ptr Aggregator::add(std::unique_ptr<BatchCall>& call) {
  Dropped gone{{}, &BatchStatistics::rejected, nullptr};
  Dropped expired{{}, &BatchStatistics::expired, nullptr};
  const std::shared_ptr<void> announced = std::move(call->transfer);
  Lock lock(mutex_);
  const bool let_in = was_let_in(announced);
  counts_.totals.rows += call->rows;
  bool hold = false;
  bool lacks_room = false;
  std::shared_ptr<Aggregator> self;  // callbacks of rows that fail may drop the last handle
  Refusal refused = refusal(*call);
  if (!refused.error) {
    if (queue_.rows() + held_.rows() + call->rows > options_->max_queue) {
      drop_expired(call->arrived, expired);
    }
    refused.error = make_room(*call, let_in, gone, hold);
    lacks_room = refused.error != nullptr;
  }
  const TimePoint now = call->arrived;
  const TimePoint deadline = call->deadline.value_or(TimePoint::max());
  const bool may_run_here =
      call->may_run_batch && options_->short_handler && host_ && host_->loop()->is_driving();
  const BatchLane* lane = nullptr;  // to which it came, when nothing else has changed
  if (refused.error) {
    counts_.totals.*refused.as += call->rows;
  } else {
    if (adaptive_) adaptive_->arrived(now, call->rows);
    if (hold) {
      held_.add(std::move(call));
    } else {
      lane = &enqueue(std::move(call));
    }
    if (!gone.calls.empty()) admit_held();  // what gave way may have been larger
  }
  if (!expired.calls.empty() || !gone.calls.empty()) {
    lane = nullptr;
    self = shared_from_this();
    lock.unlock();
    fail(expired);
    fail(gone);
    lock.lock();
  } else if (!host_) {
    return refused.error;
  }
  if (lacks_room) flush_if_full(now);
  const bool waits = lane != nullptr && !work_.accumulate && !due(*lane, now);
  if (waits && !group_.complete() && !waits_for_room()) {
    arm_timer_at(std::min(deadline, has_free_slot() ? triggers_.due_at(*lane) : deadline));
  } else {
    start_if_due(lock, now, may_run_here);
  }
  return refused.error;
}

// Where a call may not come in, whatever room there is.
Aggregator::Refusal Aggregator::refusal(BatchCall& call) {
  try {
    if (closed_.empty()) ensure_host();
  } catch (...) {
    return {std::current_exception(), &BatchStatistics::invalid};
  }
  if (host_) call.arrived = host_->loop()->now();
  if (!closed_.empty()) {
    return {std::make_exception_ptr(ShutDown(closed_)), &BatchStatistics::dropped};
  }
  if (const CallContext* context = CallContext::current()) {
    if (!call.caller) call.caller = context->shared_caller();
    if (!call.deadline) call.deadline = context->deadline();
    call.extras = context->extras();
  }
  if (has_left(call)) {
    return {std::make_exception_ptr(PeerLost("the row's caller is gone", false)),
            &BatchStatistics::left};
  }
  if (call.timeout != Duration::zero()) {
    const TimePoint own = after(call.arrived, call.timeout);
    call.deadline = std::min(own, call.deadline.value_or(TimePoint::max()));
  }
  if (std::exception_ptr error = too_large(call)) return {error, &BatchStatistics::invalid};
  return {};
}

std::exception_ptr Aggregator::too_large(const BatchCall& call) const {
  const LargestBatch largest = largest_batch(*options_);
  if (call.rows > largest.rows) {
    return std::make_exception_ptr(InvalidArgument(
        "a call of " + std::to_string(call.rows) + " rows is larger than a batch: at most " +
        std::to_string(largest.rows) + " (BatchOptions::" + largest.option + ")"));
  }
  if (call.bytes > options_->max_queue_bytes) {
    return std::make_exception_ptr(InvalidArgument(
        "a call of " + std::to_string(call.bytes) + " bytes is larger than the batcher's queue: " +
        std::to_string(options_->max_queue_bytes) + " (BatchOptions::max_queue_bytes)"));
  }
  return nullptr;
}

// Null, when the call may come in; then `hold` says whether it has to wait outside of the queue,
// and who gives way is in `gone`. One that was let in has its bytes already.
std::exception_ptr Aggregator::make_room(const BatchCall& call, bool let_in, Dropped& gone,
                                         bool& hold) {
  const BatchOptions& options = *options_;
  std::size_t queued = queue_.rows();
  std::size_t held = held_.rows();
  std::vector<const BatchCall*> way;
  std::string limit;  // that is reached
  const std::size_t bytes = queue_.bytes() + held_.bytes() + transfer_bytes_ + call.bytes;
  if (!let_in && bytes > options.max_queue_bytes) {
    limit = std::to_string(options.max_queue_bytes) + " bytes, BatchOptions::max_queue_bytes";
    const auto find_in = [&](const auto& calls, std::size_t& rows) {
      way = calls.who_gives_way(call, &CallerShares::Share::bytes, bytes - options.max_queue_bytes);
      for (const BatchCall* other : way)
        rows -= other->rows;
    };
    find_in(queue_, queued);
    if (way.empty()) find_in(held_, held);
    if (way.empty()) return overloaded(limit);
  }
  const bool holds = options.on_full == OnFull::wait;
  const bool fits = queued + call.rows <= options.max_queue;
  hold = holds && (!fits || held > 0);
  const std::size_t rows = (hold ? held : queued) + call.rows;
  if (rows > options.max_queue) {
    limit = std::to_string(options.max_queue) + " rows, BatchOptions::max_queue" +
            (hold ? ", and as many are held back" : "");
    const bool gives_way_already = !way.empty();
    const std::size_t excess = rows - options.max_queue;
    const auto measure = &CallerShares::Share::rows;
    way = hold ? held_.who_gives_way(call, measure, excess)
               : queue_.who_gives_way(call, measure, excess);
    if (gives_way_already || way.empty()) return overloaded(limit);
  }
  if (!way.empty()) displace(way, limit, gone);
  return nullptr;
}

void Aggregator::displace(const std::vector<const BatchCall*>& those, const std::string& limit,
                          Dropped& gone) {
  const auto is_one = [&those](const BatchCall& call) {
    return std::find(those.begin(), those.end(), &call) != those.end();
  };
  take_out(is_one, gone);
  gone.error = overloaded(limit + "; this caller has most of that, and another one needed room");
}

std::exception_ptr Aggregator::overloaded(const std::string& limit) const {
  const Duration soon = batch_time_ / static_cast<Duration::rep>(options_->parallelism);
  const auto microseconds = std::chrono::ceil<std::chrono::microseconds>(soon).count();
  return std::make_exception_ptr(Overloaded(
      "the batcher's queue is full (" + limit + "); try again " +
          (microseconds > 0 ? "in about " + std::to_string(microseconds) + " us" : "later"),
      soon));
}

BatchLane& Aggregator::enqueue(std::unique_ptr<BatchCall> call) {
  group_.add(*call);
  const bool flushed = call->flushed;
  BatchLane& lane = queue_.add(std::move(call));
  if (flushed) lane.flush();
  return lane;
}

void Aggregator::admit_held() {
  while (const BatchCall* next = held_.next()) {
    if (queue_.rows() + next->rows > options_->max_queue) return;
    enqueue(held_.take_next());
  }
}

// --- leaving without having run

void Aggregator::left(const BatchCalls& calls) {
  for (const auto& call : calls)
    group_.remove(*call);
}

// Those that wait, and came when a batch might be larger.
void Aggregator::drop_too_large(Dropped& gone) {
  const LargestBatch largest = largest_batch(*options_);
  const auto is_too_large = [&largest](const BatchCall& call) {
    return call.rows > largest.rows && !call.pinned;
  };
  take_out(is_too_large, gone);
  if (gone.calls.empty()) return;
  gone.error = std::make_exception_ptr(InvalidArgument(
      "the call has more rows than a batch, since BatchOptions::" + std::string(largest.option) +
      " became " + std::to_string(largest.rows) + " while it waited"));
}

void Aggregator::drop_expired(TimePoint now, Dropped& gone) {
  queue_.remove_expired(now, gone.calls);
  left(gone.calls);
  held_.remove_expired(now, gone.calls);
  count(gone);
  if (gone.calls.empty()) return;
  gone.error = std::make_exception_ptr(
      TimedOut("the row's deadline passed while it waited for its batch; it never ran", false));
  admit_held();
}

bool Aggregator::has_left(const BatchCall& call) const {
  return call.caller && host_ && !host_->is_current(*call.caller);
}

void Aggregator::drop_those_who_left() {
  Dropped gone{{}, &BatchStatistics::left, nullptr};
  {
    Lock lock(mutex_);
    if (!host_) return;
    const auto goes = [this](const BatchCall& call) { return !call.pinned && has_left(call); };
    take_out(goes, gone);
    admit_held();
    group_.refresh(who_lives());
    gone.error = std::make_exception_ptr(PeerLost("the row's caller is gone", false));
    start_if_due(lock, host_->loop()->now());
  }
  fail(gone);
}

void Aggregator::cancel(std::uint64_t ticket) {
  Dropped gone{{}, &BatchStatistics::cancelled, nullptr};
  {
    Lock lock(mutex_);
    const auto is_it = [ticket](const BatchCall& call) {
      return call.ticket == ticket && !call.pinned;
    };
    take_out(is_it, gone);
    if (gone.calls.empty()) return;
    admit_held();
    if (has_left(*gone.calls.front())) {  // whose calls are cancelled with him
      gone.count = &BatchStatistics::left;
      gone.error = std::make_exception_ptr(PeerLost("the row's caller is gone", false));
    } else {
      gone.error = std::make_exception_ptr(
          Cancelled("the row was taken back before its batch started", false));
    }
    start_if_due(lock, host_->loop()->now());
  }
  fail(gone);
}

void Aggregator::count_refused(std::size_t rows, std::uint64_t BatchStatistics::*as) {
  const Lock lock(mutex_);
  counts_.totals.rows += rows;
  counts_.totals.*as += rows;
}

void Aggregator::end(const std::string& why) {
  Dropped gone{{}, &BatchStatistics::dropped, nullptr};
  {
    const Lock lock(mutex_);
    if (closed_.empty()) closed_ = why;
    draining_ = false;
    const auto waits = [this](const BatchCall& call) { return &call != accumulating_; };
    take_out(waits, gone);
    gone.error = std::make_exception_ptr(ShutDown(why + "; this row had waited"));
  }
  fail(gone);
  Lock lock(mutex_);
  report_if_closed(lock);
}

// By who took them out of the queue, in one step with that: until they were told, nothing is
// closed.
void Aggregator::count(Dropped& gone) noexcept {
  if (!gone.calls.empty() && !std::exchange(gone.is_counted, true)) ++dropping_;
}

// User code hears of it, so without the lock.
void Aggregator::fail(Dropped& gone) {
  if (gone.calls.empty()) return;
  std::size_t rows = 0;
  for (const auto& call : gone.calls)
    rows += call->rows;
  {
    const Lock lock(mutex_);
    counts_.totals.*gone.count += rows;
  }
  {
    const OutsideOfCalls none;
    for (const auto& call : gone.calls)
      call->fail(gone.error, gone.began);
    gone.calls.clear();
  }
  Lock lock(mutex_);
  gone.is_counted = false;
  --dropping_;
  report_if_closed(lock);
}

}  // namespace batchrpc::detail
