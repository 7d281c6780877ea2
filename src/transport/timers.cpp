#include "transport/timers.hpp"

#include <sys/epoll.h>

#include <utility>

namespace batchrpc::detail {

// Nobody reads the clock: edge-triggered, each expiry counts.
std::shared_ptr<Timers> Timers::make(std::shared_ptr<Site> site) {
  std::shared_ptr<Timers> timers(new Timers(std::move(site)));
  timers->name_ = timers->site_->reactor().add(timers, timers->clock_.fd(), EPOLLIN | EPOLLET);
  return timers;
}

Timers::~Timers() {
  if (name_ != 0) site_->reactor().remove(name_);
  if (held_) site_->release();
}

TimerId Timers::schedule(TimePoint when, Task task) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return 0;  // the task goes with this call's arguments, after the lock
  const TimerId timer = heap_.push(when, std::move(task));
  if (when < armed_for_) arm(when);
  return timer;
}

bool Timers::cancel(TimerId timer) {
  std::optional<Task> task;  // destroyed after the lock
  const std::lock_guard lock(mutex_);
  task = heap_.remove(timer);
  return task.has_value();
}

void Timers::rearm() {
  const std::lock_guard lock(mutex_);
  if (!heap_.empty() && heap_.next() < armed_for_) arm(heap_.next());
  if (armed_for_ == TimePoint::max() && std::exchange(held_, false)) site_->release();
}

void Timers::stop() {
  TimerHeap heap;
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  std::swap(heap, heap_);
}

void Timers::arm(TimePoint when) {
  if (!std::exchange(held_, true)) site_->hold();
  armed_for_ = when;
  clock_.set(when);
}

void Timers::happened(std::uint32_t /*events*/) {
  site_->run([self = shared_from_this()] { self->fire(); });
}

void Timers::fire() {
  struct AtEnd {
    ~AtEnd() { timers.rearm(); }
    Timers& timers;
  };
  const AtEnd at_end{*this};  // a task that throws leaves the others to the next alarm
  std::unique_lock lock(mutex_);
  armed_for_ = TimePoint::max();
  const TimePoint now = std::chrono::steady_clock::now();
  const std::uint64_t end = heap_.sequence();
  // Tasks scheduled meanwhile have their turn after the sockets.
  while (!heap_.empty() && heap_.next() <= now && heap_.next_sequence() < end) {
    Task task = heap_.pop();
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
  }
}

}  // namespace batchrpc::detail
