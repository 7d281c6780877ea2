#pragma once

#include <memory>

#include "base/task_queue.hpp"
#include "batchrpc/base/executor.hpp"
#include "batchrpc/future/wait.hpp"
#include "batchrpc/transport/loop.hpp"

namespace batchrpc {

/// Tasks on the driving thread: handlers, where the loop has no threads of its own, and short ones
/// everywhere. They come after the messages that are there, so that a batch gathers them all. Tasks
/// that the loop drops at its end are destroyed.
class LoopTasks final : public Executor, public std::enable_shared_from_this<LoopTasks> {
 public:
  /// `context` is what a task that waits does.
  LoopTasks(std::shared_ptr<Loop> loop, std::shared_ptr<WaitContext> context);
  void post(Task task) override;

 private:
  class Run;

  const std::shared_ptr<Loop> loop_;
  const std::shared_ptr<WaitContext> context_;
  detail::TaskQueue tasks_;
};

}  // namespace batchrpc
