#pragma once

#include <memory>

#include "base/task_queue.hpp"
#include "batchrpc/base/executor.hpp"
#include "batchrpc/future/wait.hpp"
#include "batchrpc/transport/loop.hpp"

namespace batchrpc {

/// Runs tasks on the thread that drives the loop: short handlers, and all handlers if the node has
/// no workers. They run after the messages that have already arrived, so that a batch gathers these
/// messages. Tasks that the loop drops at its end are destroyed.
class LoopTasks final : public Executor, public std::enable_shared_from_this<LoopTasks> {
 public:
  /// A task that waits for a future waits by `context`.
  LoopTasks(std::shared_ptr<Loop> loop, std::shared_ptr<WaitContext> context);
  void post(Task task) override;

 private:
  class Run;

  const std::shared_ptr<Loop> loop_;
  const std::shared_ptr<WaitContext> context_;
  detail::TaskQueue tasks_;
};

}  // namespace batchrpc
