#include "node/loop_tasks.hpp"

#include <utility>

#include "node/output_scope.hpp"

namespace batchrpc {

// Runs the next task; one that the loop drops takes it along. A task itself would not fit into
// another without an allocation.
class LoopTasks::Run {
 public:
  explicit Run(std::shared_ptr<LoopTasks> tasks) : tasks_(std::move(tasks)) {}
  Run(Run&&) = default;
  Run& operator=(Run&&) = delete;
  ~Run() {
    if (tasks_) tasks_->next();
  }
  void operator()() {
    const auto self = std::exchange(tasks_, nullptr);
    const OutputScope scope(self->context_);
    self->next()();
  }

 private:
  std::shared_ptr<LoopTasks> tasks_;
};

LoopTasks::LoopTasks(std::shared_ptr<Loop> loop, std::shared_ptr<WaitContext> context)
    : loop_(std::move(loop)), context_(std::move(context)) {}

void LoopTasks::post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  loop_->defer(Run(shared_from_this()));
}

Task LoopTasks::next() {
  const std::lock_guard lock(mutex_);
  Task task = std::move(tasks_.front());
  tasks_.pop_front();
  return task;
}

}  // namespace batchrpc
