#include "transport/strand.hpp"

namespace batchrpc::detail {

bool Strand::begin() {
  const std::lock_guard lock(mutex_);
  if (taken_ || !tasks_.empty()) return false;
  taken_ = true;
  return true;
}

// Runs the tasks that are waiting now; tasks that arrive meanwhile are left to other threads. A
// thread that continues a task has priority, since its task began before all others.
void Strand::end() {
  std::unique_lock lock(mutex_);
  for (std::size_t left = tasks_.size(); left > 0 && !tasks_.empty() && resuming_ == 0; --left) {
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
  }
  if (resuming_ > 0) {
    handed_ = true;
    handed_over_.notify_one();
    return;
  }
  taken_ = false;
  if (tasks_.empty() || std::exchange(posted_, true)) return;
  lock.unlock();
  post_([this] { come_for_tasks(); });
}

void Strand::clear() {
  std::deque<Task> tasks;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  tasks.swap(tasks_);
}

void Strand::come_for_tasks() {
  {
    const std::lock_guard lock(mutex_);
    posted_ = false;
    if (taken_) return;  // the thread that has the turn runs them
    taken_ = true;
  }
  const Held held(*this);
}

void Strand::resume() {
  std::unique_lock lock(mutex_);
  if (taken_) {
    ++resuming_;
    handed_over_.wait(lock, [this] { return handed_; });
    --resuming_;
    handed_ = false;
  }
  taken_ = true;
}

}  // namespace batchrpc::detail
