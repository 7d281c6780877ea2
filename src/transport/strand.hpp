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

/// Lets one thread at a time run tasks of loops, where several run their io_context. A thread that
/// finds another at it leaves its task to that one. Thread-safe.
class Strand {
 public:
  /// `post` has a task run by some thread, later.
  explicit Strand(std::function<void(Task)> post) : post_(std::move(post)) {}
  Strand(const Strand&) = delete;
  Strand& operator=(const Strand&) = delete;

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

  /// Whether the calling thread runs a task now, and has not suspended it (Driven::Suspension).
  [[nodiscard]] bool is_mine() const noexcept { return Driven::find(this) != nullptr; }

  /// Destroys the tasks that wait: their context ends.
  void clear();

 private:
  /// The calling thread's turn, which has begun.
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
  bool taken_ = false;   // it is somebody's turn, or is being handed over
  bool posted_ = false;  // somebody will come for the tasks that are left
  int resuming_ = 0;     // threads that go on with a task
  bool handed_ = false;  // to one of them
};

template <class F>
bool Strand::leave_to_another(F& task) {
  const std::lock_guard lock(mutex_);
  if (!taken_ && tasks_.empty()) return false;
  tasks_.emplace_back(std::move(task));
  return true;
}

}  // namespace batchrpc::detail
