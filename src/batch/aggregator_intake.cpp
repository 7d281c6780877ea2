#include <algorithm>
#include <utility>

#include "base/time.hpp"
#include "batch/aggregator.hpp"
#include "batch/lone_host.hpp"
#include "batch/options_check.hpp"
#include "batchrpc/base/error.hpp"

// The admission of calls.
namespace batchrpc::detail {

void Aggregator::exposed_on(const std::shared_ptr<Host>& host) {
  const std::lock_guard lock(mutex_);
  if (host_) {
    host_.require_lock(*host);
  } else {
    adopt(host);
  }
  host_.report_statistics(host, [weak = weak_from_this()]() -> std::optional<BatcherMetrics> {
    const auto self = weak.lock();
    if (!self) return std::nullopt;
    return metrics_of(self->statistics());
  });
}

void Aggregator::adopt(const std::shared_ptr<Host>& host) {
  const std::weak_ptr<Aggregator> weak = weak_from_this();
  host_.adopt(host, *options_,
              {.on_change =
                   [weak] {
                     if (const auto self = weak.lock()) self->drop_those_who_left();
                   },
               .on_end =
                   [weak] {
                     if (const auto self = weak.lock()) self->end("the batcher's node has ended");
                   }});
  waiting_.be_of(host->name());
  waiting_.configure(*options_, host_.is_live());
}

void Aggregator::adopt_lone_host() {
  check_has_node(*options_, false);
  adopt(std::make_shared<LoneHost>());
}

/// The outcome of a call's arrival, and what to do next.
struct Aggregator::Arrival {
  std::exception_ptr error{};       // why it was refused; null: it was admitted
  const BatchLane* lane = nullptr;  // the call's lane, if nothing else has changed
  TimePoint now{};
  TimePoint deadline = TimePoint::max();
  bool may_run_here = false;
  bool lacks_room = false;
  Dropped expired{};
  Dropped displaced{};

  [[nodiscard]] bool dropped_any() const noexcept { return expired.any() || displaced.any(); }
};

std::exception_ptr Aggregator::add(std::unique_ptr<BatchCall>& call) {
  const std::shared_ptr<void> announced = std::move(call->transfer);
  Arrival arrival;
  Deferred todo;
  {
    const std::lock_guard lock(mutex_);
    take_in(call, announced, arrival);
    if (!arrival.dropped_any()) follow(arrival, todo);
  }
  if (arrival.dropped_any()) {
    tell_and_follow(arrival);
  } else if (todo.any()) {
    perform(std::move(todo));
  }
  return arrival.error;
}

// Dropped and expired calls are answered before anything starts.
void Aggregator::tell_and_follow(Arrival& arrival) {
  const auto self = shared_from_this();  // callbacks of failing rows may drop the last handle
  tell(std::move(arrival.expired));
  tell(std::move(arrival.displaced));
  Deferred todo;
  {
    const std::lock_guard lock(mutex_);
    follow(arrival, todo);
  }
  perform(std::move(todo));
}

void Aggregator::take_in(std::unique_ptr<BatchCall>& call, const std::shared_ptr<void>& announced,
                         Arrival& arrival) {
  const bool let_in = was_let_in(announced);
  counts_.add(&BatchStatistics::rows, call->rows);
  Refusal refused = refusal(*call);
  arrival.now = call->arrived;
  arrival.deadline = call->deadline.value_or(TimePoint::max());
  arrival.may_run_here =
      call->may_run_batch && options_->short_handler && host_ && host_.loop().is_driving();
  bool held = false;
  if (!refused.error) {
    if (waiting_.rows() + call->rows > options_->max_queue) {
      arrival.expired = drop_expired(arrival.now);
    }
    const auto room = waiting_.room_for(*call, let_in);
    held = room.held;
    arrival.lacks_room = room.refused;
    if (room.refused) {
      refused.error = overloaded(room.limit);
    } else if (!room.giving_way.empty()) {
      arrival.displaced = displace(room);
    }
  }
  if (refused.error) {
    counts_.add(refused.as, call->rows);
    arrival.error = std::move(refused.error);
    return;
  }
  starts_.arrived(arrival.now, call->rows);
  if (held) {
    waiting_.hold(std::move(call));
  } else {
    arrival.lane = &waiting_.add(std::move(call));
  }
  if (arrival.displaced.any()) waiting_.admit_held();  // the removed calls may have been larger
  if (arrival.dropped_any()) arrival.lane = nullptr;
}

// A call that joins a lane that keeps waiting changes nothing else, so the other lanes need no
// check.
void Aggregator::follow(const Arrival& arrival, Deferred& todo) {
  if (!host_) return;
  if (arrival.lacks_room) flush_if_full(arrival.now);
  const BatchLane* const lane = arrival.lane;
  const bool complete = waiting_.group_complete();
  if (lane == nullptr || accumulation_.is_used() || complete || waits_for_room() ||
      starts_.due(*lane, complete, arrival.now)) {
    return start_if_due(arrival.now, todo, arrival.may_run_here);
  }
  arm_timer_at(std::min(arrival.deadline, starts_.due_at(*lane)));
}

// Returns why a call is refused, independent of the room.
Aggregator::Refusal Aggregator::refusal(BatchCall& call) {
  try {
    if (!host_ && closing_.is_open()) adopt_lone_host();
  } catch (...) {
    return {std::current_exception(), &BatchStatistics::invalid};
  }
  if (host_) call.arrived = host_.now();
  if (!closing_.is_open()) {
    return {std::make_exception_ptr(ShutDown(closing_.why())), &BatchStatistics::dropped};
  }
  if (const CallContext* context = CallContext::current()) {
    if (!call.caller) call.caller = context->shared_caller();
    if (!call.deadline) call.deadline = context->deadline();
    call.extras = detail::ContextAccess::extras(*context);
  }
  if (host_.has_left(call)) {
    return {std::make_exception_ptr(PeerLost("the row's caller has left", false)),
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

std::exception_ptr Aggregator::overloaded(const std::string& limit) const {
  const Duration soon = starts_.retry_after();
  const auto microseconds = std::chrono::ceil<std::chrono::microseconds>(soon).count();
  return std::make_exception_ptr(Overloaded(
      "the batcher's queue is full (" + limit + "); try again " +
          (microseconds > 0 ? "in about " + std::to_string(microseconds) + " us" : "later"),
      soon));
}

}  // namespace batchrpc::detail
