#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "transport/reactor.hpp"
#include "transport/timer_heap.hpp"

namespace batchrpc::detail {

/// All timers of a loop, on the alarm of its reactor. That one is only ever set to an earlier time:
/// a timer that is cancelled leaves it as it is, so that setting and cancelling time-outs costs no
/// system call. Thread-safe.
class Timers {
 public:
  explicit Timers(std::shared_ptr<Reactor> reactor) : reactor_(std::move(reactor)) {}

  TimerId schedule(TimePoint when, Task task);
  bool cancel(TimerId timer);

  /// By whoever drives, at the alarm: runs what is due.
  void fire();

  /// Before a wait from within a task: sees to it that the other timers go on.
  void rearm();

  /// Destroys all tasks, and those that come later.
  void stop();

 private:
  void arm(TimePoint when);

  const std::shared_ptr<Reactor> reactor_;
  std::mutex mutex_;  // guards what follows
  TimerHeap heap_;
  TimePoint armed_for_ = TimePoint::max();
  bool stopped_ = false;
};

}  // namespace batchrpc::detail
