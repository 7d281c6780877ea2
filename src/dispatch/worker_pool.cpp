#include "dispatch/worker_pool.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "base/stack_use.hpp"
#include "base/start_thread.hpp"
#include "base/time.hpp"
#include "batchrpc/base/block_pool.hpp"
#include "batchrpc/future/wait.hpp"
#include "session/set_aside.hpp"

namespace batchrpc {
namespace {

int& depth() noexcept {
  thread_local int tasks = 0;
  return tasks;
}

}  // namespace

// The state that the pool and its threads share.
class WorkerPool::State final : public std::enable_shared_from_this<State> {
 public:
  State(int threads, const std::shared_ptr<Loop>& loop);

  void post(Task task);
  void work(std::size_t index);
  void run(Task task);
  bool try_take(Task& task, Waiter* idle);
  void forget(Waiter* idle);

  void begin_stop();
  /// Returns which threads have ended, as soon as all have, or at `deadline`.
  std::vector<bool> wait_for_end(TimePoint deadline);

  static const State*& this_threads() noexcept {
    thread_local const State* state = nullptr;
    return state;
  }

 private:
  using Tasks = std::deque<Task, detail::PoolAllocator<Task>>;

  bool has_work();
  [[nodiscard]] bool call_up();
  [[nodiscard]] bool await_task(Task& task);

  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable ended_;
  Tasks tasks_;
  std::vector<Waiter*> waiting_;  // workers that wait for a future and would take a task
  std::size_t idle_ = 0;          // workers that wait for a task
  bool called_ = false;           // an idle worker was woken, and has not looked yet
  bool stopping_ = false;
  std::vector<bool> has_ended_;
  const std::shared_ptr<Context> context_;
};

class WorkerPool::Context final : public WaitContext {
 public:
  // The state owns the context, and each working thread owns the state.
  Context(State& state, std::shared_ptr<Loop> loop) : state_(state), loop_(std::move(loop)) {}

  void wait(Waiter& waiter, const std::optional<TimePoint>& deadline) override {
    FlushScope::flush_current();
    const SetAside aside;
    while (!waiter.ready() && !(deadline && now() >= *deadline)) {
      Task task;
      const bool has_room = depth() < kMaxNestedTasks && !is_half_of_stack_used();
      if (has_room && state_.try_take(task, &waiter)) {
        state_.run(std::move(task));
        continue;
      }
      waiter.sleep(deadline);
      state_.forget(&waiter);
    }
  }

  [[nodiscard]] TimePoint now() const noexcept override { return loop_->now(); }

 private:
  State& state_;
  const std::shared_ptr<Loop> loop_;
};

WorkerPool::State::State(int threads, const std::shared_ptr<Loop>& loop)
    : has_ended_(static_cast<std::size_t>(threads)),
      context_(std::make_shared<Context>(*this, loop)) {}

void WorkerPool::State::post(Task task) {
  bool notifies = false;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    tasks_.push_back(std::move(task));
    notifies = call_up();
  }
  if (notifies) work_.notify_one();
}

// The caller must hold the mutex. Returns whether it must notify one idle worker once it has
// released the mutex. Of many tasks that come at once, only the first wakes a worker; each worker
// that takes a task wakes the next, as long as there are tasks.
bool WorkerPool::State::call_up() {
  if (tasks_.empty()) return false;
  if (idle_ > 0) return !std::exchange(called_, true);
  if (!waiting_.empty()) {
    waiting_.back()->nudge();
    waiting_.pop_back();
  }
  return false;
}

void WorkerPool::State::work(std::size_t index) {
  this_threads() = this;
  while (true) {
    Task task;
    if (!await_task(task)) break;
    run(std::move(task));
  }
  const std::lock_guard lock(mutex_);
  has_ended_[index] = true;
  ended_.notify_all();
}

// Returns false when the pool stops.
bool WorkerPool::State::await_task(Task& task) {
  bool notifies = false;
  {
    std::unique_lock lock(mutex_);
    while (tasks_.empty() && !stopping_) {
      ++idle_;
      work_.wait(lock);
      --idle_;
      called_ = false;
    }
    if (stopping_) return false;
    task = std::move(tasks_.front());
    tasks_.pop_front();
    notifies = call_up();
  }
  if (notifies) work_.notify_one();
  return true;
}

void WorkerPool::State::run(Task task) {
  FlushScope scope(context_);
  ++depth();
  task();
  task = nullptr;
  --depth();
  if (has_work()) scope.leave_to_loop();
}

bool WorkerPool::State::has_work() {
  const std::lock_guard lock(mutex_);
  return !tasks_.empty();
}

// Takes a task. If there is none, notes that the waiter must be nudged when one comes.
bool WorkerPool::State::try_take(Task& task, Waiter* idle) {
  bool notifies = false;
  {
    const std::lock_guard lock(mutex_);
    if (tasks_.empty()) {
      waiting_.push_back(idle);
      return false;
    }
    task = std::move(tasks_.front());
    tasks_.pop_front();
    notifies = call_up();
  }
  if (notifies) work_.notify_one();
  return true;
}

// The waiter needs no nudge any more. If it was nudged already, another thread gets the nudge.
void WorkerPool::State::forget(Waiter* idle) {
  bool notifies = false;
  {
    const std::lock_guard lock(mutex_);
    const auto at = std::find(waiting_.begin(), waiting_.end(), idle);
    if (at != waiting_.end()) {
      waiting_.erase(at);
    } else {
      notifies = call_up();
    }
  }
  if (notifies) work_.notify_one();
}

void WorkerPool::State::begin_stop() {
  Tasks dropped;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  dropped.swap(tasks_);
  work_.notify_all();
}

std::vector<bool> WorkerPool::State::wait_for_end(TimePoint deadline) {
  std::unique_lock lock(mutex_);
  ended_.wait_until(lock, deadline, [this] {
    return std::all_of(has_ended_.begin(), has_ended_.end(), [](bool ended) { return ended; });
  });
  return has_ended_;
}

WorkerPool::WorkerPool(int threads, std::shared_ptr<Loop> loop)
    : loop_(std::move(loop)), state_(std::make_shared<State>(threads, loop_)) {
  threads_.reserve(static_cast<std::size_t>(threads));
  try {
    while (threads_.size() < static_cast<std::size_t>(threads)) {
      threads_.push_back(
          start_thread("a worker of a node (NodeOptions::num_worker_threads)",
                       [state = state_, index = threads_.size()] { state->work(index); }));
    }
  } catch (...) {
    state_->begin_stop();
    for (std::thread& thread : threads_)
      thread.join();
    throw;
  }
}

WorkerPool::~WorkerPool() { stop(std::chrono::seconds(1)); }

void WorkerPool::post(Task task) { state_->post(std::move(task)); }

std::size_t WorkerPool::stop(Duration grace) {
  state_->begin_stop();
  const auto ended = state_->wait_for_end(after(loop_->now(), grace));
  std::size_t busy = 0;
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    if (!threads_[i].joinable()) continue;
    if (ended[i]) {
      threads_[i].join();
    } else {
      threads_[i].detach();
      ++busy;
    }
  }
  return busy;
}

bool WorkerPool::is_worker() const noexcept { return State::this_threads() == state_.get(); }

}  // namespace batchrpc
