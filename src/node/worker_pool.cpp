#include "node/worker_pool.hpp"

#include <algorithm>

#include "node/output_scope.hpp"

namespace batchrpc {
namespace {

// Tasks that one thread runs on top of each other; bounds its stack.
constexpr int kDeepest = 128;

int& depth() noexcept {
  thread_local int tasks = 0;
  return tasks;
}

const WorkerPool*& this_threads_pool() noexcept {
  thread_local const WorkerPool* pool = nullptr;
  return pool;
}

}  // namespace

class WorkerPool::Context final : public WaitContext {
 public:
  Context(WorkerPool& pool, std::shared_ptr<Loop> loop) : pool_(pool), loop_(std::move(loop)) {}

  void wait(Waiter& waiter, const std::optional<TimePoint>& deadline) override {
    OutputScope::flush_current();
    while (!waiter.ready() && !(deadline && now() >= *deadline)) {
      Task task;
      if (depth() < kDeepest && pool_.try_take(task, &waiter)) {
        pool_.run(std::move(task));
        continue;
      }
      waiter.sleep(deadline);
      pool_.forget(&waiter);
    }
  }

  [[nodiscard]] TimePoint now() const noexcept override { return loop_->now(); }

 private:
  WorkerPool& pool_;
  const std::shared_ptr<Loop> loop_;
};

WorkerPool::WorkerPool(int threads, std::shared_ptr<Loop> loop)
    : context_(std::make_shared<Context>(*this, std::move(loop))) {
  for (int i = 0; i < threads; ++i)
    threads_.emplace_back([this] { work(); });
}

WorkerPool::~WorkerPool() { stop(); }

void WorkerPool::post(Task task) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  tasks_.push_back(std::move(task));
  if (idle_ > 0) {
    work_.notify_one();
  } else if (!waiting_.empty()) {
    waiting_.back()->nudge();
    waiting_.pop_back();
  }
}

void WorkerPool::stop() {
  std::deque<Task> dropped;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    dropped.swap(tasks_);
    work_.notify_all();
  }
  dropped.clear();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

bool WorkerPool::is_worker() const noexcept { return this_threads_pool() == this; }

void WorkerPool::work() {
  this_threads_pool() = this;
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    work_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    --idle_;
    if (stopping_) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    run(std::move(task));
    lock.lock();
  }
}

void WorkerPool::run(Task task) {
  OutputScope scope(context_);
  ++depth();
  task();
  task = nullptr;
  --depth();
  if (has_work()) scope.leave_to_loop();
}

bool WorkerPool::has_work() {
  const std::lock_guard lock(mutex_);
  return !tasks_.empty();
}

// Takes a task; or, if there is none, notes that the waiter is to be nudged when there is.
bool WorkerPool::try_take(Task& task, Waiter* idle) {
  const std::lock_guard lock(mutex_);
  if (tasks_.empty()) {
    waiting_.push_back(idle);
    return false;
  }
  task = std::move(tasks_.front());
  tasks_.pop_front();
  return true;
}

void WorkerPool::forget(Waiter* idle) {
  const std::lock_guard lock(mutex_);
  waiting_.erase(std::remove(waiting_.begin(), waiting_.end(), idle), waiting_.end());
}

}  // namespace batchrpc
