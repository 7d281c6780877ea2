#include "batchrpc/env/lanes.hpp"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/start_thread.hpp"
#include "batchrpc/base/error.hpp"

namespace batchrpc {

LaneTask::~LaneTask() = default;
Lanes::~Lanes() = default;

namespace {

class ThreadLanes final : public Lanes {
 public:
  explicit ThreadLanes(std::size_t count) : count_(count) {
    threads_.reserve(count);
    try {
      for (std::size_t i = 0; i < count; ++i)
        threads_.push_back(start_thread("a lane (thread_lanes)", [this, i] { work(i); }));
    } catch (...) {
      end();
      throw;
    }
  }
  ThreadLanes(const ThreadLanes&) = delete;
  ThreadLanes& operator=(const ThreadLanes&) = delete;
  ~ThreadLanes() override { end(); }

  [[nodiscard]] std::size_t count() const noexcept override { return count_; }

  void run(std::shared_ptr<LaneTask> task) override {
    {
      const std::lock_guard lock(mutex_);
      if (ending_) return;
      tasks_.push_back({std::move(task), count_});
    }
    given_.notify_all();
  }

 private:
  struct Given {
    std::shared_ptr<LaneTask> task;
    std::size_t lanes_left;
  };

  // `next` is the number of the lane's next task. tasks_ begins with the first task that some lane
  // has not finished.
  void work(std::size_t lane) {
    std::uint64_t next = 0;
    std::unique_lock lock(mutex_);
    while (true) {
      given_.wait(lock, [&] { return ending_ || next < first_ + tasks_.size(); });
      if (ending_) return;
      LaneTask& task = *tasks_[next - first_].task;
      lock.unlock();
      task.run(lane);
      lock.lock();
      if (std::shared_ptr<LaneTask> finished = end_share(next++)) {
        lock.unlock();
        finished->done();
        finished.reset();
        lock.lock();
      }
    }
  }

  void end() noexcept {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    given_.notify_all();
    for (std::thread& thread : threads_)
      thread.join();
  }

  // Returns the task if this lane was the last to run its share of it, else null. The caller must
  // hold the mutex.
  [[nodiscard]] std::shared_ptr<LaneTask> end_share(std::uint64_t number) {
    Given& given = tasks_[number - first_];
    if (--given.lanes_left > 0) return nullptr;
    std::shared_ptr<LaneTask> task = std::move(given.task);
    while (!tasks_.empty() && tasks_.front().lanes_left == 0) {
      tasks_.pop_front();
      ++first_;
    }
    return task;
  }

  const std::size_t count_;
  std::mutex mutex_;
  std::condition_variable given_;
  std::deque<Given> tasks_;
  std::uint64_t first_ = 0;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<Lanes> thread_lanes(std::size_t count) {
  if (count == 0) throw InvalidArgument("thread_lanes: there must be at least one lane");
  return std::make_unique<ThreadLanes>(count);
}

}  // namespace batchrpc
