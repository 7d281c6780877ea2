#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "transport/alarm_clock.hpp"
#include "transport/site.hpp"
#include "transport/timer_heap.hpp"

namespace batchrpc::detail {

/// All timers of a loop, on one alarm clock, which its reactor watches. That is only ever set to an
/// earlier time: a timer that is cancelled leaves it as it is, so that setting and cancelling
/// time-outs costs no system call. Thread-safe.
class Timers final : public Watcher, public std::enable_shared_from_this<Timers> {
 public:
  /// Throws std::system_error where there are no descriptors left.
  static std::shared_ptr<Timers> make(std::shared_ptr<Site> site);
  ~Timers();
  Timers(const Timers&) = delete;
  Timers& operator=(const Timers&) = delete;

  TimerId schedule(TimePoint when, Task task);
  bool cancel(TimerId timer);

  /// After tasks, and before a wait from within one: sees to it that the other timers go on.
  void rearm();

  /// Destroys all tasks, and those that come later.
  void stop();

  /// The alarm: has what is due run.
  void happened(std::uint32_t events) override;

 private:
  explicit Timers(std::shared_ptr<Site> site) : site_(std::move(site)) {}
  void arm(TimePoint when);
  void fire();

  const std::shared_ptr<Site> site_;
  const AlarmClock clock_;
  std::uint64_t name_ = 0;  // the reactor's; 0: none

  std::mutex mutex_;  // guards what follows
  TimerHeap heap_;
  TimePoint armed_for_ = TimePoint::max();
  bool held_ = false;  // the site, for the alarm
  bool stopped_ = false;
};

}  // namespace batchrpc::detail
