#include <utility>

#include "batch/aggregator.hpp"
#include "batchrpc/base/error.hpp"

// Of reducers: calls that wait are accumulated, one after the other, while no batch runs.
namespace batchrpc::detail {

// Rows that the batch which gathers now has room for; while none runs.
BatchCall* Aggregator::next_to_accumulate() const {
  if (options_->order_by_peer || paused_ || running_ > 0) return nullptr;
  BatchCall* const next = queue_.next_to_accumulate();
  if (next == nullptr || queue_.accumulated_rows() + next->rows > triggers_.size()) return nullptr;
  return next;
}

// Lets go of the lock.
void Aggregator::accumulate_if_due(Lock& lock) {
  const bool posted = std::exchange(accumulation_posted_, true);
  arm_timer(TimePoint::max());  // for deadlines alone
  const auto exclusive = options_->exclusive;
  const std::uint64_t epoch = epoch_;
  lock.unlock();
  if (!posted) post_exclusively(&Aggregator::accumulate, epoch, exclusive);
}

void Aggregator::accumulate(AsyncMutex::Guard guard, std::uint64_t epoch) {
  Lock lock(mutex_);
  if (epoch != epoch_) return;
  accumulates_ = true;
  while (epoch == epoch_ && accumulate_next(lock)) {
  }
  lock.unlock();
  guard = {};  // who waits for it goes on in here
  lock.lock();
  accumulates_ = false;
  accumulation_posted_ = false;
  start_if_due(lock, host_->loop()->now());
  lock.lock();
  report_if_closed(lock);
}

// False when there is nothing to do. Lets go of the lock meanwhile.
bool Aggregator::accumulate_next(Lock& lock) {
  Dropped gone{{}, &BatchStatistics::expired, nullptr};
  drop_expired(host_->loop()->now(), gone);
  if (!gone.calls.empty()) {
    lock.unlock();
    fail(gone);
    lock.lock();
    return true;
  }
  BatchCall* const call = starting_ == 0 ? next_to_accumulate() : nullptr;
  if (call == nullptr) return false;
  accumulating_ = call;
  call->pinned = true;
  lock.unlock();
  std::exception_ptr error;
  try {
    work_.accumulate(*call);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  accumulating_ = nullptr;
  queue_.accumulated(*call);
  let_transfers_come();
  const bool is_over = !closed_.empty() && !draining_;
  if (!error && !is_over) return true;
  if (error) {
    gone = {{}, &BatchStatistics::failed, error, true};
  } else {
    gone = {{}, &BatchStatistics::dropped, std::make_exception_ptr(ShutDown(closed_))};
  }
  queue_.remove_if([call](const BatchCall& other) { return &other == call; }, gone.calls);
  left(gone.calls);
  count(gone);
  admit_held();
  lock.unlock();
  fail(gone);
  lock.lock();
  return true;
}

}  // namespace batchrpc::detail
