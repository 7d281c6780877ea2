#pragma once

#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "batchrpc/transport/loop.hpp"
#include "dispatch/workers.hpp"

namespace batchrpc {

/// The threads that run handlers. One that waits for a future runs other tasks meanwhile, on top of
/// its stack (docs/threading.md).
class WorkerPool final : public Workers {
 public:
  WorkerPool(int threads, std::shared_ptr<Loop> loop);
  /// As stop(), with a second's grace.
  ~WorkerPool() override;

  void post(Task task) override;

  /// Ends the threads. Those that are still busy when the grace is over are left to themselves, and
  /// end when their task does. Not on a worker.
  std::size_t stop(Duration grace) override;
  [[nodiscard]] bool is_worker() const noexcept override;

 private:
  class Context;
  class State;

  const std::shared_ptr<Loop> loop_;
  const std::shared_ptr<State> state_;  // with a thread that was left to itself
  std::vector<std::thread> threads_;
};

}  // namespace batchrpc
