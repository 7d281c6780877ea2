#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <memory>
#include <mutex>
#include <utility>

#include "transport/guest.hpp"
#include "transport/timer_heap.hpp"

namespace batchrpc::detail {

/// All timers of a loop, on one timer of Asio's. That one is only ever moved forward in time: a
/// timer that is cancelled leaves it as it is, so that setting and cancelling time-outs costs no
/// system call. Thread-safe.
class AsioTimers : public std::enable_shared_from_this<AsioTimers> {
 public:
  explicit AsioTimers(asio::io_context& io, std::shared_ptr<Guest> guest = nullptr)
      : timer_(io), guest_(std::move(guest)) {}

  TimerId schedule(TimePoint when, Task task);
  bool cancel(TimerId timer);

  /// Before a wait from within a task: sees to it that the other timers go on.
  void rearm();

  /// Destroys all tasks, and those that come later.
  void stop();

 private:
  void arm(TimePoint when);
  void fire();

  std::mutex mutex_;
  TimerHeap heap_;
  asio::steady_timer timer_;
  const std::shared_ptr<Guest> guest_;
  TimePoint armed_for_ = TimePoint::max();
  bool stopped_ = false;
};

}  // namespace batchrpc::detail
