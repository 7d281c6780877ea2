#include <algorithm>
#include <utility>

#include "batch/aggregator.hpp"
#include "batch/options_check.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/batch/outside_of_calls.hpp"

// Calls that leave an Aggregator without having run. They are removed and counted in one step, and
// answered without the mutex, since callbacks of the program see the answers. The batcher does not
// count as closed until they are answered.
namespace batchrpc::detail {

Aggregator::Dropped Aggregator::drop(BatchCalls calls, Counter as, std::exception_ptr error,
                                     bool began) {
  if (calls.empty()) return {};
  for (const auto& call : calls)
    counts_.add(as, call->rows);
  closing_.drop_begins();
  return {.calls = std::move(calls), .error = std::move(error), .began = began};
}

void Aggregator::tell(Dropped&& gone) {
  if (!gone.any()) return;
  {
    const OutsideOfCalls none;
    for (const auto& call : gone.calls)
      call->fail(gone.error, gone.began);
    gone.calls.clear();
  }
  Deferred todo;
  {
    const std::lock_guard lock(mutex_);
    closing_.drop_ends();
    report_if_closed(todo);
  }
  perform(std::move(todo));
}

// Starts batches first. Callbacks of a batch that ran may have dropped the last handle.
void Aggregator::tell_and_perform(Deferred&& todo, Dropped&& gone) {
  if (!gone.any()) return perform(std::move(todo));
  const auto self = shared_from_this();
  perform(std::move(todo));
  tell(std::move(gone));
}

Aggregator::Dropped Aggregator::displace(const WaitingCalls::Room& room) {
  const auto& those = room.giving_way;
  const auto is_one = [&those](const BatchCall& call) {
    return std::find(those.begin(), those.end(), &call) != those.end();
  };
  return drop(
      waiting_.remove_if(is_one), &BatchStatistics::rejected,
      overloaded(room.limit +
                 "; this caller has the largest share of it, and another caller needed room"));
}

Aggregator::Dropped Aggregator::drop_expired(TimePoint now) {
  BatchCalls expired = waiting_.remove_expired(now);
  if (expired.empty()) return {};
  waiting_.admit_held();
  return drop(std::move(expired), &BatchStatistics::expired,
              std::make_exception_ptr(TimedOut(
                  "the row's deadline passed while it waited for its batch; it never ran", false)));
}

// Removes waiting calls that arrived when a batch could be larger.
Aggregator::Dropped Aggregator::drop_too_large() {
  const LargestBatch largest = largest_batch(*options_);
  BatchCalls gone = waiting_.remove_if(
      [&largest](const BatchCall& call) { return call.rows > largest.rows && !call.pinned; });
  if (gone.empty()) return {};
  return drop(std::move(gone), &BatchStatistics::invalid,
              std::make_exception_ptr(InvalidArgument(
                  "the call has more rows than a batch can have, because BatchOptions::" +
                  std::string(largest.option) + " was changed to " + std::to_string(largest.rows) +
                  " while the call waited")));
}

void Aggregator::drop_those_who_left() {
  Dropped gone;
  Deferred todo;
  {
    const std::lock_guard lock(mutex_);
    if (!host_) return;
    gone = drop(waiting_.remove_if(
                    [this](const BatchCall& call) { return !call.pinned && host_.has_left(call); }),
                &BatchStatistics::left,
                std::make_exception_ptr(PeerLost("the row's caller has left", false)));
    waiting_.admit_held();
    waiting_.refresh(host_.is_live());
    start_if_due(host_.now(), todo);
  }
  tell_and_perform(std::move(todo), std::move(gone));
}

void Aggregator::cancel(std::uint64_t ticket) {
  Dropped gone;
  Deferred todo;
  {
    const std::lock_guard lock(mutex_);
    BatchCalls calls = waiting_.remove_if(
        [ticket](const BatchCall& call) { return call.ticket == ticket && !call.pinned; });
    if (calls.empty()) return;
    waiting_.admit_held();
    if (host_.has_left(*calls.front())) {  // a lost caller's calls are cancelled with it
      gone = drop(std::move(calls), &BatchStatistics::left,
                  std::make_exception_ptr(PeerLost("the row's caller has left", false)));
    } else {
      gone = drop(std::move(calls), &BatchStatistics::cancelled,
                  std::make_exception_ptr(
                      Cancelled("the row was cancelled before its batch started", false)));
    }
    start_if_due(host_.now(), todo);
  }
  tell_and_perform(std::move(todo), std::move(gone));
}

void Aggregator::count_refused(std::size_t rows, std::uint64_t BatchStatistics::*as) {
  const std::lock_guard lock(mutex_);
  counts_.add(&BatchStatistics::rows, rows);
  counts_.add(as, rows);
}

void Aggregator::end(const std::string& why) {
  Dropped gone;
  Deferred todo;
  {
    const std::lock_guard lock(mutex_);
    closing_.close(why);
    starts_.stop_draining();
    gone =
        drop(waiting_.remove_if(
                 [this](const BatchCall& call) { return &call != accumulation_.current(); }),
             &BatchStatistics::dropped,
             std::make_exception_ptr(ShutDown(why + "; this row was still waiting for its batch")));
    report_if_closed(todo);
  }
  perform(std::move(todo));
  tell(std::move(gone));
}

}  // namespace batchrpc::detail
