#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "batchrpc/base/function.hpp"

namespace batchrpc::detail {

/// Lets one thread at a time run the tasks of a loop, where several run its io_context. A thread
/// that finds another at it leaves its task to that one. Tasks do not throw.
class Turn {
 public:
  Turn() = default;
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  /// Runs `task`: now, when it is nobody's turn or this thread's already; else the thread that has
  /// the turn does, after what waits already.
  template <class F>
  void run(F&& task) {
    if (is_mine()) {
      task();
      return;
    }
    if (!begin()) return leave_to_another(std::forward<F>(task));
    task();
    end();
  }

  /// Whether the calling thread runs a task now, and does not pause.
  [[nodiscard]] bool is_mine() const noexcept {
    return holder_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }

  /// A wait from within a task, if the calling thread is in one: others have their turn meanwhile.
  class Pause {
   public:
    explicit Pause(Turn& turn);
    /// Waits for the end of a task that another thread runs.
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Turn* const turn_;  // null: it was not this thread's
  };

 private:
  bool begin();
  void end();
  void resume();
  template <class F>
  void leave_to_another(F&& task);

  std::mutex mutex_;
  std::condition_variable handed_over_;
  std::deque<Task> tasks_;  // while it is somebody's turn
  std::atomic<std::thread::id> holder_{};
  bool taken_ = false;   // it is somebody's turn, or is being handed over
  int resuming_ = 0;     // threads whose pause is over
  bool handed_ = false;  // to one of them
};

template <class F>
void Turn::leave_to_another(F&& task) {
  {
    const std::lock_guard lock(mutex_);
    if (taken_) {
      tasks_.emplace_back(std::forward<F>(task));
      return;
    }
  }
  run(std::forward<F>(task));  // it has just become free
}

/// Runs `task` in its turn; where a loop has no turns, one thread drives it anyway.
template <class F>
void run_in(const std::shared_ptr<Turn>& turn, F&& task) {
  if (turn) {
    turn->run(std::forward<F>(task));
  } else {
    task();
  }
}

}  // namespace batchrpc::detail
