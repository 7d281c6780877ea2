#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>

#include "batchrpc/base/executor.hpp"
#include "batchrpc/call/node_options.hpp"
#include "batchrpc/future/wait.hpp"
#include "batchrpc/transport/loop.hpp"
#include "dispatch/workers.hpp"
#include "node/fork_mark.hpp"

namespace batchrpc {

/// Makes, runs and ends the threads of a node: its loop, and the workers that run its handlers. The
/// loop is the node's own, one on the io_context of the embedding program, or one that the program
/// has made itself. Thread-safe, except for the functions that end them.
class NodeThreads {
 public:
  /// Starts the threads. `options` must outlive this.
  explicit NodeThreads(const NodeOptions& options);

  [[nodiscard]] const std::shared_ptr<Loop>& loop() const noexcept { return loop_; }
  /// How a thread of the program, or a task of the loop, waits for a future.
  [[nodiscard]] const std::shared_ptr<WaitContext>& context() const noexcept { return context_; }
  /// Runs tasks on the loop's thread.
  [[nodiscard]] const std::shared_ptr<Executor>& loop_tasks() const noexcept { return loop_tasks_; }
  /// Runs tasks where handlers run that are not marked short.
  [[nodiscard]] std::shared_ptr<Executor> workers() const {
    return workers_ ? std::shared_ptr<Executor>(workers_) : loop_tasks_;
  }
  /// The number of worker threads that the node has started itself.
  [[nodiscard]] std::size_t own_workers() const noexcept;

  /// Whether the calling thread drives the loop or is a worker.
  [[nodiscard]] bool is_own_thread() const;
  [[nodiscard]] bool is_forked_copy() const noexcept { return fork_mark_->is_forked_copy(); }
  /// Throws ShutDown in a forked child, which has none of the threads.
  void refuse_forked_copy() const { fork_mark_->refuse_forked_copy(options_.name); }

  /// Whether this class has made the loop, and ends it. False: the program has.
  [[nodiscard]] bool made_loop() const noexcept { return origin_ != Origin::given; }
  /// Whether a thread of the node drives the loop, and not one of the program.
  [[nodiscard]] bool has_own_loop() const noexcept { return origin_ == Origin::own; }

  /// Drops the tasks that wait for a worker, and gives those that run `grace` to finish. Returns
  /// how many still run then.
  std::size_t stop_workers(Duration grace);
  /// Ends the loop if this class has made it.
  void stop_loop();
  /// Throws `error` out of the io_context's run(). Does nothing without an io_context or an error.
  void rethrow_in_context(const std::exception_ptr& error) const;

 private:
  enum class Origin : std::uint8_t { own, embedded, given };

  const NodeOptions& options_;
  const std::shared_ptr<const ForkMark> fork_mark_ = std::make_shared<ForkMark>();
  const Origin origin_;
  const std::shared_ptr<Loop> loop_;
  const std::shared_ptr<WaitContext> context_;
  const std::shared_ptr<Executor> loop_tasks_;
  const std::shared_ptr<Workers> workers_;  // null: the loop runs the handlers
};

}  // namespace batchrpc
