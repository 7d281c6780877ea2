#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "batchrpc/transport/loop.hpp"

namespace batchrpc {

/// Runs a task on the loop again and again, with a pause before each run. Thread-safe.
class RepeatedTask {
 public:
  RepeatedTask(std::shared_ptr<Loop> loop, Duration pause);

  /// Begins to run `task`; called once. `owner` keeps this alive: nothing runs without it.
  void start(std::function<void()> task, std::weak_ptr<const void> owner);
  /// The task does not start again from now on.
  void stop();

 private:
  void schedule();

  const std::shared_ptr<Loop> loop_;
  const Duration pause_;
  std::function<void()> task_;
  std::weak_ptr<const void> owner_;

  std::mutex mutex_;  // guards the members below
  TimerId timer_ = 0;
  bool stopped_ = false;
};

}  // namespace batchrpc
