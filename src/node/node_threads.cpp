#include "node/node_threads.hpp"

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <optional>
#include <string>
#include <utility>

#include "batchrpc/transport/socket_loop.hpp"
#include "dispatch/context_workers.hpp"
#include "dispatch/loop_tasks.hpp"
#include "dispatch/worker_pool.hpp"
#include "session/flush_scope.hpp"
#include "session/set_aside.hpp"

namespace batchrpc {
namespace {

// Drives the loop while the calling thread waits.
class LoopWait final : public WaitContext {
 public:
  LoopWait(std::shared_ptr<Loop> loop, std::string node, std::shared_ptr<const ForkMark> fork_mark)
      : loop_(std::move(loop)), node_(std::move(node)), fork_mark_(std::move(fork_mark)) {}
  void wait(Waiter& waiter, const std::optional<TimePoint>& deadline) override {
    fork_mark_->refuse_forked_copy(node_);
    FlushScope::flush_current();
    const SetAside aside;
    loop_->wait(waiter, deadline);
  }
  [[nodiscard]] TimePoint now() const noexcept override { return loop_->now(); }

 private:
  const std::shared_ptr<Loop> loop_;
  const std::string node_;
  const std::shared_ptr<const ForkMark> fork_mark_;
};

std::shared_ptr<Loop> loop_for(const NodeOptions& options) {
  if (options.simulation.loop) return options.simulation.loop;
  if (options.io_context != nullptr) return SocketLoop::embed(*options.io_context);
  return SocketLoop::start({.busy_poll = options.busy_poll});
}

std::shared_ptr<Workers> workers_for(const NodeOptions& options, const std::shared_ptr<Loop>& loop,
                                     const std::shared_ptr<WaitContext>& context) {
  if (options.simulation.loop) return nullptr;
  if (options.io_context != nullptr) {
    return std::make_shared<ContextWorkers>(*options.io_context, context);
  }
  return std::make_shared<WorkerPool>(options.num_worker_threads, loop);
}

}  // namespace

NodeThreads::NodeThreads(const NodeOptions& options)
    : options_(options),
      origin_(options.simulation.loop         ? Origin::given
              : options.io_context != nullptr ? Origin::embedded
                                              : Origin::own),
      loop_(loop_for(options)),
      context_(std::make_shared<LoopWait>(loop_, options.name, fork_mark_)),
      loop_tasks_(std::make_shared<LoopTasks>(loop_, context_)),
      workers_(workers_for(options, loop_, context_)) {}

std::size_t NodeThreads::own_workers() const noexcept {
  return has_own_loop() ? static_cast<std::size_t>(options_.num_worker_threads) : 0;
}

bool NodeThreads::is_own_thread() const {
  return loop_->is_driving() || (workers_ && workers_->is_worker());
}

std::size_t NodeThreads::stop_workers(Duration grace) {
  return workers_ ? workers_->stop(grace) : 0;
}

void NodeThreads::stop_loop() {
  if (made_loop()) std::static_pointer_cast<SocketLoop>(loop_)->stop();
}

void NodeThreads::rethrow_in_context(const std::exception_ptr& error) const {
  if (options_.io_context == nullptr || !error) return;
  asio::post(*options_.io_context, [error] { std::rethrow_exception(error); });
}

}  // namespace batchrpc
