#include "node/context_workers.hpp"

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <utility>

#include "base/time.hpp"
#include "node/output_scope.hpp"

namespace batchrpc {
namespace {

// A task that the calling thread runs, on top of others perhaps.
struct Running {
  explicit Running(const ContextWorkers* of)
      : workers(of), outer(std::exchange(innermost(), this)) {}
  ~Running() { innermost() = outer; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  static Running*& innermost() noexcept {
    thread_local Running* running = nullptr;
    return running;
  }

  const ContextWorkers* const workers;
  Running* const outer;
};

std::size_t running_here(const ContextWorkers* workers) noexcept {
  std::size_t count = 0;
  for (const Running* at = Running::innermost(); at != nullptr; at = at->outer)
    count += at->workers == workers ? 1 : 0;
  return count;
}

}  // namespace

ContextWorkers::ContextWorkers(asio::io_context& io, std::shared_ptr<WaitContext> context)
    : io_(io), context_(std::move(context)) {}

// The tasks stay here: the context may keep what is posted for longer than the node lives.
void ContextWorkers::post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    tasks_.push_back(std::move(task));
  }
  asio::post(io_, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->run_next();
  });
}

void ContextWorkers::run_next() {
  Task task;
  {
    const std::lock_guard lock(mutex_);
    if (tasks_.empty()) return;  // stopped
    task = std::move(tasks_.front());
    tasks_.pop_front();
    ++running_;
  }
  {
    const Running running(this);
    const OutputScope scope(context_);
    task();
    task = nullptr;
  }
  const std::lock_guard lock(mutex_);
  --running_;
  finished_.notify_all();
}

bool ContextWorkers::is_worker() const noexcept { return running_here(this) > 0; }

std::size_t ContextWorkers::stop(Duration grace) {
  std::deque<Task> dropped;  // destroyed without the lock
  const std::size_t here = running_here(this);
  const TimePoint deadline = after(context_->now(), grace);
  std::unique_lock lock(mutex_);
  stopped_ = true;
  dropped.swap(tasks_);
  finished_.wait_until(lock, deadline, [&] { return running_ <= here; });
  return running_ - here;
}

}  // namespace batchrpc
