#pragma once

#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "batchrpc/base/executor.hpp"
#include "batchrpc/transport/loop.hpp"

namespace batchrpc {

/// The threads that run handlers. One that waits for a future runs other tasks meanwhile, on top of
/// its stack (docs/threading.md).
class WorkerPool final : public Executor {
 public:
  WorkerPool(int threads, std::shared_ptr<Loop> loop);
  /// As stop(), with a second's grace.
  ~WorkerPool() override;

  void post(Task task) override;

  /// Drops the tasks that wait, lets those that run finish for `grace`, and ends the threads.
  /// Returns how many are still busy then: they are left to themselves, and end when their task
  /// does. Not on a worker.
  std::size_t stop(Duration grace);
  [[nodiscard]] bool is_worker() const noexcept;

 private:
  class Context;
  class State;

  const std::shared_ptr<Loop> loop_;
  const std::shared_ptr<State> state_;  // with a thread that was left to itself
  std::vector<std::thread> threads_;
};

}  // namespace batchrpc
