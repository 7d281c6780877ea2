#pragma once

#include <asio/steady_timer.hpp>
#include <atomic>
#include <memory>

#include "base/task_queue.hpp"
#include "batchrpc/future/wait.hpp"
#include "dispatch/workers.hpp"
#include "transport/presence.hpp"

namespace batchrpc {

/// Runs handlers on the threads that run the io_context of the embedding program. As many run at
/// once as there are such threads, apart from the one that drives the loop.
class ContextWorkers final : public Workers, public std::enable_shared_from_this<ContextWorkers> {
 public:
  /// A task that waits for a future waits by `context`.
  ContextWorkers(asio::io_context& io, std::shared_ptr<WaitContext> context);

  void post(Task task) override;
  [[nodiscard]] bool is_worker() const noexcept override;
  /// Does not wait for a task of the calling thread.
  std::size_t stop(Duration grace) override;

 private:
  void come_for_one();
  void come_for_one_put_off();
  void look_later();
  void run_next();

  asio::io_context& io_;
  const std::shared_ptr<WaitContext> context_;
  detail::Presence presence_;  // the threads that run a task
  detail::TaskQueue tasks_;
  std::atomic<int> put_off_{0};       // tasks that no thread will take for now
  std::atomic<bool> looking_{false};  // a later look for a free thread is scheduled
  asio::steady_timer look_;           // used by the thread that has set looking_
};

}  // namespace batchrpc
