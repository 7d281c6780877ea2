#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "batchrpc/base/function.hpp"
#include "transport/driven.hpp"

namespace batchrpc::detail {

/// Lets one thread at a time run tasks of loops whose io_context several threads run. A thread that
/// finds another one running leaves its task to that thread. Thread-safe.
class Strand {
 public:
  /// `post` makes some thread run a task later.
  explicit Strand(std::function<void(Task)> post) : post_(std::move(post)) {}
  Strand(const Strand&) = delete;
  Strand& operator=(const Strand&) = delete;

  /// Runs `task` now if no thread or this one has the turn. Otherwise the thread that has the turn
  /// runs it, after the tasks that already wait.
  template <class F>
  void run(F&& task) {
    if (is_mine()) {
      task();
    } else if (begin()) {
      const Held held(*this);
      task();
    } else if (!leave_to_another(task)) {  // the turn has just become free
      run(std::forward<F>(task));
    }
  }

  /// Returns whether the calling thread runs a task now, and has not suspended it
  /// (Driven::Suspension).
  [[nodiscard]] bool is_mine() const noexcept { return Driven::find(this) != nullptr; }

  /// Destroys the waiting tasks, because their context ends.
  void clear();

 private:
  /// The calling thread's turn, while it lasts.
  class Held final : public Driven {
   public:
    explicit Held(Strand& turn) : Driven(&turn), turn_(turn) {}
    ~Held() { turn_.end(); }

   private:
    void suspend() override {
      turn_.end();
      active_ = false;
    }
    void resume() override {
      turn_.resume();
      active_ = true;
    }
    Strand& turn_;
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
  bool taken_ = false;   // a thread has the turn, or it is being passed on
  bool posted_ = false;  // a thread will come for the remaining tasks
  int resuming_ = 0;     // the number of threads that continue a task
  bool handed_ = false;  // the turn was passed to one of them
};

template <class F>
bool Strand::leave_to_another(F& task) {
  const std::lock_guard lock(mutex_);
  if (!taken_ && tasks_.empty()) return false;
  tasks_.emplace_back(std::move(task));
  return true;
}

}  // namespace batchrpc::detail
