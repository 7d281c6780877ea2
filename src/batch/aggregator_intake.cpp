#include <algorithm>
#include <utility>

#include "base/time.hpp"
#include "batch/aggregator.hpp"
#include "batch/calling_thread.hpp"
#include "batch/options_check.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/transport/asio_loop.hpp"

// How calls come into an Aggregator, and how they leave it without having run.
namespace batchrpc::detail {

void Aggregator::exposed_on(const Host& host) {
  const std::weak_ptr<Aggregator> weak = weak_from_this();
  const Lock lock(mutex_);
  if (host_) return;
  check_group(*options_, host);
  host_ = host;
  executor_ = options_->executor        ? options_->executor
              : options_->short_handler ? host.loop_tasks
                                        : host.workers;
  change_handler_ = host.on_change([weak] {
    if (const auto self = weak.lock()) self->drop_those_who_left();
  });
  end_handler_ = host.on_end([weak] {
    if (const auto self = weak.lock()) self->end("the batcher's node has ended");
  });
  group_.be_of(host.name);
  group_.configure(*options_, host_->is_live, [](const auto&) {});
}

// A batcher without a node has a loop, and so a thread and a clock, of its own.
void Aggregator::ensure_host(Lock& lock) {
  if (host_) return;
  if (!options_->all_of.empty() || options_->all_callers) {
    throw InvalidArgument(std::string("BatchOptions::") +
                          (options_->all_callers ? "all_callers" : "all_of") +
                          " is about peers, which only a node knows: expose the batcher on one "
                          "before its first row");
  }
  lock.unlock();
  std::shared_ptr<Loop> loop = AsioLoop::start();
  Host host;
  host.workers = loop;
  host.loop_tasks = std::make_shared<CallingThread>();
  host.loop = loop;
  host.is_live = [](std::string_view) { return true; };
  host.is_current = [](const PeerIdentity&) { return true; };
  host.may_be_peer = [](std::string_view) { return true; };
  host.on_change = [](const std::function<void()>&) -> std::uint64_t { return 0; };
  host.on_end = host.on_change;
  host.forget = [](std::uint64_t) {};
  exposed_on(host);
  lock.lock();
}

std::exception_ptr Aggregator::add(std::unique_ptr<BatchCall>& call) {
  Dropped gone{{}, &BatchStatistics::rejected, nullptr};
  Dropped expired{{}, &BatchStatistics::expired, nullptr};
  std::exception_ptr refused;
  {
    Lock lock(mutex_);
    counts_.totals.rows += call->rows;
    try {
      if (closed_.empty()) ensure_host(lock);
    } catch (...) {
      refused = std::current_exception();
    }
    if (!refused && !closed_.empty()) refused = std::make_exception_ptr(ShutDown(closed_));
    bool hold = false;
    TimePoint now{};
    if (!refused) {
      call->arrived = now = host_->loop->now();
      if (const CallContext* context = CallContext::current()) {
        if (!call->caller && context->shared_caller()) {
          call->caller = context->shared_caller();
          if (!host_->is_current(*call->caller)) {
            refused = std::make_exception_ptr(PeerLost("the row's caller is gone", false));
          }
        }
        if (!call->deadline) call->deadline = context->deadline();
      }
      if (call->timeout != Duration::zero()) {
        const TimePoint own = after(call->arrived, call->timeout);
        call->deadline = std::min(own, call->deadline.value_or(TimePoint::max()));
      }
      if (!refused) refused = too_large(*call);
    }
    if (!refused && queue_.rows() + held_.rows() + call->rows > options_->max_queue) {
      drop_expired(now, expired);
    }
    if (!refused) refused = make_room(*call, gone, hold);
    if (refused) {
      counts_.totals.rejected += call->rows;
    } else {
      if (adaptive_) adaptive_->arrived(now, call->rows);
      if (hold) {
        held_.add(std::move(call));
      } else {
        enqueue(std::move(call));
        if (!gone.calls.empty()) admit_held();  // what gave way may have been larger
      }
      start_if_due(lock, now);
    }
  }
  fail(expired);
  fail(gone);
  return refused;
}

std::exception_ptr Aggregator::too_large(const BatchCall& call) const {
  if (call.rows > options_->max_size) {
    return std::make_exception_ptr(InvalidArgument(
        "a call of " + std::to_string(call.rows) + " rows is larger than a batch: at most " +
        std::to_string(options_->max_size) + " (BatchOptions::max_size)"));
  }
  if (call.bytes > options_->max_queue_bytes) {
    return std::make_exception_ptr(InvalidArgument(
        "a call of " + std::to_string(call.bytes) + " bytes is larger than the batcher's queue: " +
        std::to_string(options_->max_queue_bytes) + " (BatchOptions::max_queue_bytes)"));
  }
  return nullptr;
}

// Null, when the call may come in; then `hold` says whether it has to wait outside of the queue.
std::exception_ptr Aggregator::make_room(const BatchCall& call, Dropped& gone, bool& hold) {
  const BatchOptions& options = *options_;
  if (queue_.bytes() + held_.bytes() + call.bytes > options.max_queue_bytes) {
    return overloaded(std::to_string(options.max_queue_bytes) +
                      " bytes, BatchOptions::max_queue_bytes");
  }
  const bool fits = queue_.rows() + call.rows <= options.max_queue;
  const auto limit = [&options] {
    return std::to_string(options.max_queue) + " rows, BatchOptions::max_queue";
  };
  if (options.on_full == OnFull::hold) {
    hold = !fits || held_.rows() > 0;
    if (!hold || held_.rows() + call.rows <= options.max_queue) return nullptr;
    return overloaded(limit() + ", and as many are held back");
  }
  if (fits) return nullptr;
  if (queue_.make_way(call.caller.get(), call.rows, gone.calls)) {
    left(gone.calls);
    gone.error =
        overloaded(limit() + "; this caller has most of them, and another one needed room");
    return nullptr;
  }
  return overloaded(limit());
}

std::exception_ptr Aggregator::overloaded(const std::string& limit) const {
  const Duration soon = batch_time_ / static_cast<Duration::rep>(options_->parallelism);
  const auto microseconds = std::chrono::ceil<std::chrono::microseconds>(soon).count();
  return std::make_exception_ptr(Overloaded(
      "the batcher's queue is full (" + limit + "); try again " +
          (microseconds > 0 ? "in about " + std::to_string(microseconds) + " us" : "later"),
      soon));
}

void Aggregator::enqueue(std::unique_ptr<BatchCall> call) {
  group_.add(*call);
  queue_.add(std::move(call));
}

// One that is larger than the whole queue, which has become smaller since, comes alone.
void Aggregator::admit_held() {
  while (const BatchCall* next = held_.next()) {
    if (!queue_.empty() && queue_.rows() + next->rows > options_->max_queue) return;
    enqueue(held_.take_next());
  }
}

// --- leaving without having run

void Aggregator::left(const BatchCalls& calls) {
  for (const auto& call : calls)
    group_.remove(*call);
}

void Aggregator::drop_expired(TimePoint now, Dropped& gone) {
  queue_.remove_expired(now, gone.calls);
  left(gone.calls);
  held_.remove_expired(now, gone.calls);
  if (gone.calls.empty()) return;
  gone.error = std::make_exception_ptr(
      TimedOut("the row's deadline passed while it waited for its batch; it never ran", false));
  admit_held();
}

void Aggregator::drop_those_who_left() {
  Dropped gone{{}, &BatchStatistics::left, nullptr};
  {
    Lock lock(mutex_);
    if (!host_) return;
    const auto has_left = [this](const BatchCall& call) {
      return call.caller && !call.pinned && !host_->is_current(*call.caller);
    };
    queue_.remove_if(has_left, gone.calls);
    left(gone.calls);
    held_.remove_if(has_left, gone.calls);
    admit_held();
    group_.refresh(host_->is_live);
    gone.error = std::make_exception_ptr(PeerLost("the row's caller is gone", false));
    start_if_due(lock, host_->loop->now());
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
    queue_.remove_if(is_it, gone.calls);
    left(gone.calls);
    if (gone.calls.empty()) held_.remove_if(is_it, gone.calls);
    if (gone.calls.empty()) return;
    admit_held();
    gone.error = std::make_exception_ptr(
        Cancelled("the row was taken back before its batch started", false));
    start_if_due(lock, host_->loop->now());
  }
  fail(gone);
}

void Aggregator::count_refused(std::size_t rows) {
  const Lock lock(mutex_);
  counts_.totals.rows += rows;
  counts_.totals.rejected += rows;
}

void Aggregator::end(const std::string& why) {
  Dropped gone{{}, &BatchStatistics::dropped, nullptr};
  {
    const Lock lock(mutex_);
    if (closed_.empty()) closed_ = why;
    draining_ = false;
    const auto waits = [this](const BatchCall& call) { return &call != accumulating_; };
    queue_.remove_if(waits, gone.calls);
    left(gone.calls);
    held_.remove_if(waits, gone.calls);
    gone.error = std::make_exception_ptr(ShutDown(why + "; this row had waited"));
  }
  fail(gone);
  Lock lock(mutex_);
  tell_if_closed(lock);
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
  for (const auto& call : gone.calls)
    call->fail(gone.error, false);
  Lock lock(mutex_);
  tell_if_closed(lock);
}

}  // namespace batchrpc::detail
