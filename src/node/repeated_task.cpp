#include "node/repeated_task.hpp"

#include <new>
#include <utility>

namespace batchrpc {

RepeatedTask::RepeatedTask(std::shared_ptr<Loop> loop, Duration pause)
    : loop_(std::move(loop)), pause_(pause) {}

void RepeatedTask::start(std::function<void()> task, std::weak_ptr<const void> owner) {
  task_ = std::move(task);
  owner_ = std::move(owner);
  schedule();
}

void RepeatedTask::schedule() {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  timer_ = loop_->schedule(loop_->now() + pause_, [this, owner = owner_] {
    const auto alive = owner.lock();
    if (!alive) return;
    try {
      task_();
    } catch (const std::bad_alloc&) {  // NOLINT: it is left out this time
    }
    schedule();
  });
}

void RepeatedTask::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  if (timer_ != 0) loop_->cancel(timer_);
}

}  // namespace batchrpc
