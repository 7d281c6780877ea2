#pragma once

#include <deque>
#include <mutex>
#include <utility>

#include "batchrpc/base/function.hpp"

namespace batchrpc::detail {

/// A first-in, first-out queue of tasks that threads take one by one. Thread-safe. Tasks are never
/// destroyed under its lock.
class TaskQueue {
 public:
  /// Adds a task. Returns false and drops the task if the queue is closed.
  bool push(Task task) {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    tasks_.push_back(std::move(task));
    return true;
  }

  /// Takes the next task; empty if there is none.
  Task pop() {
    const std::lock_guard lock(mutex_);
    if (tasks_.empty()) return nullptr;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    return task;
  }

  /// Drops the waiting tasks and all later ones. Returns false if the queue was closed already.
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
