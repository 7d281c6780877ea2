#include <utility>

#include "batch/aggregator.hpp"
#include "batch/options_check.hpp"

// Control of a running Aggregator, and its statistics.
namespace batchrpc::detail {

std::shared_ptr<const BatchOptions> Aggregator::options() const {
  const std::lock_guard lock(mutex_);
  return options_;
}

// Callbacks of failing rows may drop the last handle, as in close() and add().
void Aggregator::set_options(BatchOptions options) {
  const auto self = shared_from_this();
  check_options(options, work_);
  auto changed = std::make_shared<const BatchOptions>(std::move(options));
  std::shared_ptr<const BatchOptions> before;
  Dropped gone;
  Deferred todo;
  {
    const std::lock_guard lock(mutex_);
    check_change(*options_, *changed);
    if (host_) check_host(*changed, host_.get());
    before = std::exchange(options_, std::move(changed));
    starts_.configure(*before, *options_);
    accumulation_.configure(*options_);
    if (!host_) {
      waiting_.configure(*options_, nullptr);
      return;
    }
    waiting_.configure(*options_, host_.is_live());
    gone = drop_too_large();
    waiting_.admit_held();
    start_if_due(host_.now(), todo);
  }
  tell_and_perform(std::move(todo), std::move(gone));
}

void Aggregator::flush() {
  Deferred todo;
  {
    const std::lock_guard lock(mutex_);
    if (starts_.is_paused() || waiting_.is_queue_empty()) return;
    waiting_.flush();
    start_if_due(host_.now(), todo);
  }
  perform(std::move(todo));
}

void Aggregator::pause() {
  const std::lock_guard lock(mutex_);
  if (closing_.is_open()) starts_.pause();
}

void Aggregator::resume() {
  Deferred todo;
  {
    const std::lock_guard lock(mutex_);
    if (!starts_.resume() || !host_) return;
    start_if_due(host_.now(), todo);
  }
  perform(std::move(todo));
}

Future<void> Aggregator::close(BatchClose how) {
  const auto self = shared_from_this();
  Future<void> closed;
  Deferred todo;
  {
    const std::lock_guard lock(mutex_);
    closed = closing_.wait();
    closing_.close("the batcher is closed");
    if (how == BatchClose::drain && host_) {
      starts_.drain();
      start_if_due(host_.now(), todo);
    }
    report_if_closed(todo);
  }
  perform(std::move(todo));
  if (how == BatchClose::fail) end("the batcher is closed");
  return closed;
}

BatchStatistics Aggregator::statistics() const {
  const std::lock_guard lock(mutex_);
  BatchStatistics now = counts_.totals();
  now.rows_per_second = host_ ? counts_.rows_per_second(host_.now()) : 0;
  now.queued = waiting_.queued_rows();
  now.queued_bytes = waiting_.bytes();
  now.held = waiting_.held_rows();
  now.running = starts_.running();
  now.wait = starts_.wait();
  now.size = starts_.size();
  now.min_size = starts_.min_size();
  return now;
}

}  // namespace batchrpc::detail
