#include <utility>

#include "batch/aggregator.hpp"
#include "batch/options_check.hpp"
#include "batchrpc/base/error.hpp"

// What an Aggregator is told while it runs, and what it tells.
namespace batchrpc::detail {

// `before`: the options till now. What was learnt stays where it still holds.
void Aggregator::adapt(const BatchOptions& before) {
  const BatchOptions& now = *options_;
  const LatencyTarget& target = now.latency_target;
  if (target.latency == Duration::zero()) {
    adaptive_.reset();
  } else if (!adaptive_ || target.latency != before.latency_target.latency ||
             target.percentile != before.latency_target.percentile ||
             now.max_size != before.max_size || now.parallelism != before.parallelism) {
    adaptive_.emplace(target, now.max_size, now.parallelism);
  }
  adopt_choice();
}

void Aggregator::adopt_choice() {
  triggers_ = BatchTriggers(*options_, adaptive_ ? &adaptive_->choice() : nullptr);
}

std::shared_ptr<const BatchOptions> Aggregator::options() const {
  const Lock lock(mutex_);
  return options_;
}

// Callbacks of rows that fail may drop the last handle, as in close() and add().
void Aggregator::set_options(BatchOptions options) {
  const auto self = shared_from_this();
  check_options(options, work_);
  auto changed = std::make_shared<const BatchOptions>(std::move(options));
  Dropped gone{{}, &BatchStatistics::invalid, nullptr};
  {
    Lock lock(mutex_);
    check_change(*options_, *changed);
    if (host_) check_group(*changed, *host_);
    const auto before = std::exchange(options_, std::move(changed));
    if (before->exclusive != options_->exclusive) begin_epoch();
    adapt(*before);
    if (!host_) return;
    group_.configure(*options_, who_lives(), [this](const auto& add) { queue_.for_each(add); });
    drop_too_large(gone);
    admit_held();
    start_if_due(lock, host_->loop()->now());
  }
  fail(gone);
}

// What was posted, or waits for the mutex, is void, and is started anew.
void Aggregator::begin_epoch() noexcept {
  ++epoch_;
  starting_ = 0;
  if (!accumulates_) accumulation_posted_ = false;
}

void Aggregator::expect(const std::string& peer) {
  const Lock lock(mutex_);
  if (!options_->all_callers) {
    throw InvalidArgument("a batcher expects a peer only with BatchOptions::all_callers");
  }
  if (peer.empty()) throw InvalidArgument("expect: a peer's name is not empty");
  if (host_) check_peer("expect", peer, *host_);
  group_.expect(peer, who_lives());
}

void Aggregator::flush() {
  Lock lock(mutex_);
  if (paused_ || queue_.empty()) return;
  queue_.for_each_lane([](BatchLane& lane) { lane.flush(); });
  held_.flush();
  start_if_due(lock, host_->loop()->now());
}

void Aggregator::pause() {
  const Lock lock(mutex_);
  paused_ = paused_ || closed_.empty();
}

void Aggregator::resume() {
  Lock lock(mutex_);
  if (!std::exchange(paused_, false) || !host_) return;
  start_if_due(lock, host_->loop()->now());
}

Future<void> Aggregator::close(BatchClose how) {
  const auto self = shared_from_this();
  Promise<void> closed;
  Future<void> future = closed.get_future();
  {
    Lock lock(mutex_);
    closing_.push_back(std::move(closed));
    if (closed_.empty()) closed_ = "the batcher is closed";
    if (how == BatchClose::drain && host_) {
      draining_ = true;
      paused_ = false;
      start_if_due(lock, host_->loop()->now());
    }
  }
  if (how == BatchClose::fail) end("the batcher is closed");
  Lock lock(mutex_);
  report_if_closed(lock);
  return future;
}

// Lets go of the lock.
void Aggregator::report_if_closed(Lock& lock) {
  let_transfers_come();
  const bool idle = running_ == 0 && accumulating_ == nullptr && dropping_ == 0;
  const bool is_over = !closed_.empty() && idle && queue_.empty() && held_.rows() == 0;
  std::vector<Promise<void>> told;
  if (is_over) told.swap(closing_);
  lock.unlock();
  for (Promise<void>& promise : told)
    promise.set_value();
}

BatchStatistics Aggregator::statistics() const {
  const Lock lock(mutex_);
  BatchStatistics now = counts_.totals;
  now.rows_per_second = host_ ? counts_.rows_per_second(host_->loop()->now()) : 0;
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
