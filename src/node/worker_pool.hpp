#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "batchrpc/base/executor.hpp"
#include "batchrpc/future/wait.hpp"
#include "batchrpc/transport/loop.hpp"

namespace batchrpc {

/// The threads that run handlers. One that waits for a future runs other tasks meanwhile, on top of
/// its stack (docs/threading.md).
class WorkerPool final : public Executor {
 public:
  WorkerPool(int threads, std::shared_ptr<Loop> loop);
  ~WorkerPool() override;

  void post(Task task) override;

  /// Lets the tasks that run finish, drops the others, and joins. Not on a worker.
  void stop();
  [[nodiscard]] bool is_worker() const noexcept;

 private:
  class Context;

  void work();
  void run(Task task);
  bool try_take(Task& task, Waiter* idle);
  void forget(Waiter* idle);
  bool has_work();

  std::mutex mutex_;
  std::condition_variable work_;
  std::deque<Task> tasks_;
  std::vector<Waiter*> waiting_;  // workers that wait for a future and would take a task
  std::size_t idle_ = 0;          // workers that wait for a task
  bool stopping_ = false;
  std::shared_ptr<Context> context_;
  std::vector<std::thread> threads_;
};

}  // namespace batchrpc
