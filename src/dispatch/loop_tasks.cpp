#include "dispatch/loop_tasks.hpp"

#include <utility>

#include "session/flush_scope.hpp"

namespace batchrpc {

// Runs the next task. If the loop drops this object, the task is destroyed with it. A task would
// not fit into another task without an allocation.
class LoopTasks::Run {
 public:
  explicit Run(std::shared_ptr<LoopTasks> tasks) : tasks_(std::move(tasks)) {}
  Run(Run&&) = default;
  Run& operator=(Run&&) = delete;
  ~Run() {
    if (tasks_) tasks_->tasks_.pop();
  }
  void operator()() {
    const auto self = std::exchange(tasks_, nullptr);
    const FlushScope scope(self->context_);
    self->tasks_.pop()();
  }

 private:
  std::shared_ptr<LoopTasks> tasks_;
};

LoopTasks::LoopTasks(std::shared_ptr<Loop> loop, std::shared_ptr<WaitContext> context)
    : loop_(std::move(loop)), context_(std::move(context)) {}

void LoopTasks::post(Task task) {
  tasks_.push(std::move(task));
  loop_->defer(Run(shared_from_this()));
}

}  // namespace batchrpc
