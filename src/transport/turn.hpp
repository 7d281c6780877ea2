#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "batchrpc/base/function.hpp"

namespace batchrpc::detail {

/// Lets one thread at a time run tasks of loops, where several run their io_context. A thread that
/// finds another at it leaves its task to that one. Thread-safe.
class Turn {
 public:
  /// `post` has a task run by some thread, later.
  explicit Turn(std::function<void(Task)> post) : post_(std::move(post)) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  /// Runs `task`: now, when it is nobody's turn or this thread's already; else whoever has the turn
  /// does, after what waits already.
  template <class F>
  void run(F&& task) {
    if (is_mine()) {
      task();
    } else if (begin()) {
      const Held held(*this);
      task();
    } else if (!leave_to_another(task)) {  // it has just become free
      run(std::forward<F>(task));
    }
  }

  /// Whether the calling thread runs a task now, and does not pause.
  [[nodiscard]] bool is_mine() const noexcept {
    return holder_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }

  /// Destroys the tasks that wait: their context ends.
  void clear();

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
  struct Held {
    explicit Held(Turn& of) : turn(of) {}
    ~Held() { turn.end(); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    Turn& turn;
  };

  bool begin();
  void end();
  void come_for_tasks();
  void resume();
  template <class F>
  bool leave_to_another(F& task);

  const std::function<void(Task)> post_;
  std::mutex mutex_;
  std::condition_variable handed_over_;
  std::deque<Task> tasks_;
  std::atomic<std::thread::id> holder_{};
  bool taken_ = false;   // it is somebody's turn, or is being handed over
  bool posted_ = false;  // somebody will come for the tasks that are left
  int resuming_ = 0;     // threads whose pause is over
  bool handed_ = false;  // to one of them
};

template <class F>
bool Turn::leave_to_another(F& task) {
  const std::lock_guard lock(mutex_);
  if (!taken_ && tasks_.empty()) return false;
  tasks_.emplace_back(std::move(task));
  return true;
}

}  // namespace batchrpc::detail
