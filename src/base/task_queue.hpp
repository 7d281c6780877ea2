#pragma once

#include <deque>
#include <mutex>
#include <utility>

#include "batchrpc/base/function.hpp"

namespace batchrpc::detail {

/// Tasks in their order, for which threads come one by one. Thread-safe; tasks are destroyed
/// without its lock.
class TaskQueue {
 public:
  /// False where the queue is closed: the task is dropped.
  bool push(Task task) {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    tasks_.push_back(std::move(task));
    return true;
  }

  /// Empty where no task is left.
  Task pop() {
    const std::lock_guard lock(mutex_);
    if (tasks_.empty()) return nullptr;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    return task;
  }

  /// Drops the tasks that wait, and all that come. False where it was closed already.
  bool close() {
    std::deque<Task> dropped;
    const std::lock_guard lock(mutex_);
    dropped.swap(tasks_);
    return !std::exchange(closed_, true);
  }

 private:
  std::mutex mutex_;
  std::deque<Task> tasks_;
  bool closed_ = false;
};

}  // namespace batchrpc::detail
