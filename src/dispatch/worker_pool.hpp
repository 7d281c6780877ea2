#pragma once

#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "batchrpc/transport/loop.hpp"
#include "dispatch/workers.hpp"

namespace batchrpc {

/// The threads that run handlers. A thread that waits for a future runs other tasks meanwhile, on
/// top of its stack (docs/threading.md).
class WorkerPool final : public Workers {
 public:
  WorkerPool(int threads, std::shared_ptr<Loop> loop);
  /// Calls stop() with a grace of one second.
  ~WorkerPool() override;

  void post(Task task) override;

  /// Ends the threads. A thread that is still busy after `grace` is detached, and ends with its
  /// task. Do not call this on a worker.
  std::size_t stop(Duration grace) override;
  [[nodiscard]] bool is_worker() const noexcept override;

 private:
  class Context;
  class State;

  const std::shared_ptr<Loop> loop_;
  const std::shared_ptr<State> state_;  // shared with detached threads
  std::vector<std::thread> threads_;
};

}  // namespace batchrpc
