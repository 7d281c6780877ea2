#include <utility>

#include "batch/aggregator.hpp"
#include "batchrpc/base/error.hpp"

// Reducers: waiting calls are accumulated one after the other, while no batch runs.
namespace batchrpc::detail {

void Aggregator::accumulate(AsyncMutex::Guard guard) {
  while (accumulate_next()) {
  }
  guard = {};  // the next holder continues in here
  Deferred todo;
  {
    const std::lock_guard lock(mutex_);
    accumulation_.task_ended();
    start_if_due(host_.now(), todo);
    report_if_closed(todo);
  }
  perform(std::move(todo));
}

// Returns false if there is nothing to do.
bool Aggregator::accumulate_next() {
  Dropped expired;
  BatchCall* call = nullptr;
  {
    const std::lock_guard lock(mutex_);
    expired = drop_expired(host_.now());
    if (!expired.any() && !starts_.any_starting()) call = accumulation_.next(waiting_, starts_);
    if (call != nullptr) accumulation_.begin(*call);
  }
  if (expired.any()) {
    tell(std::move(expired));
    return true;
  }
  if (call == nullptr) return false;
  std::exception_ptr error;
  try {
    work_.accumulate(*call);
  } catch (...) {
    error = std::current_exception();
  }
  Dropped gone;
  Deferred todo;
  {
    const std::lock_guard lock(mutex_);
    accumulation_.end();
    waiting_.accumulated(*call);
    let_transfers_come(todo);
    gone = drop_accumulated(*call, error);
  }
  perform(std::move(todo));
  tell(std::move(gone));
  return true;
}

// The call stays unless the reducer threw `error`, or the batcher has ended.
Aggregator::Dropped Aggregator::drop_accumulated(const BatchCall& call,
                                                 const std::exception_ptr& error) {
  const bool is_over = !closing_.is_open() && !starts_.is_draining();
  if (!error && !is_over) return {};
  BatchCalls gone = waiting_.remove_if([&call](const BatchCall& other) { return &other == &call; });
  waiting_.admit_held();
  if (error) return drop(std::move(gone), &BatchStatistics::failed, error, true);
  return drop(std::move(gone), &BatchStatistics::dropped,
              std::make_exception_ptr(ShutDown(closing_.why())));
}

}  // namespace batchrpc::detail
