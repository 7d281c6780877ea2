#pragma once

#include <asio/steady_timer.hpp>
#include <atomic>
#include <memory>

#include "base/task_queue.hpp"
#include "batchrpc/future/wait.hpp"
#include "dispatch/workers.hpp"
#include "transport/presence.hpp"

namespace batchrpc {

/// Handlers on the threads that run the io_context of the program that embeds the node: as many at
/// once as there are such threads, beside the one that drives the loop.
class ContextWorkers final : public Workers, public std::enable_shared_from_this<ContextWorkers> {
 public:
  /// `context` is what a task that waits does.
  ContextWorkers(asio::io_context& io, std::shared_ptr<WaitContext> context);

  void post(Task task) override;
  [[nodiscard]] bool is_worker() const noexcept override;
  /// A task of the calling thread is not waited for.
  std::size_t stop(Duration grace) override;

 private:
  void come_for_one();
  void come_for_one_put_off();
  void look_later();
  void run_next();

  asio::io_context& io_;
  const std::shared_ptr<WaitContext> context_;
  detail::Presence presence_;  // who runs a task
  detail::TaskQueue tasks_;
  std::atomic<int> put_off_{0};       // tasks for which nobody comes for now
  std::atomic<bool> looking_{false};  // a look for a thread with room is to come
  asio::steady_timer look_;           // for who has set looking_
};

}  // namespace batchrpc
