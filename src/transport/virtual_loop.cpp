#include "batchrpc/transport/virtual_loop.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "transport/nested_wait.hpp"
#include "transport/program_thread.hpp"
#include "transport/timer_heap.hpp"

namespace batchrpc {
namespace {

// Nodes that live send pings for ever, so that something is always left to happen.
constexpr Duration kLongestWait = std::chrono::hours(24);

/// Counts for the time of a scope, also when a task throws a test's failure.
class Count {
 public:
  explicit Count(int& count) noexcept : count_(count) { ++count_; }
  ~Count() { --count_; }
  Count(const Count&) = delete;
  Count& operator=(const Count&) = delete;

 private:
  int& count_;
};

}  // namespace

struct VirtualLoop::Tasks {
  detail::TimerHeap heap;
};

VirtualDeadlock::~VirtualDeadlock() = default;

VirtualLoop::VirtualLoop(std::uint64_t seed) : tasks_(std::make_unique<Tasks>()), random_(seed) {}

VirtualLoop::~VirtualLoop() { drop_tasks(); }

void VirtualLoop::drop_tasks() noexcept {
  // A task's destruction may schedule another.
  while (!tasks_->heap.empty())
    tasks_->heap.pop();
}

void VirtualLoop::post(Task task) { schedule(now_, std::move(task)); }

TimerId VirtualLoop::schedule(TimePoint when, Task task) {
  return tasks_->heap.push(std::max(when, now_), std::move(task));
}

bool VirtualLoop::cancel(TimerId timer) { return tasks_->heap.remove(timer).has_value(); }

std::size_t VirtualLoop::pending() const noexcept { return tasks_->heap.size(); }

bool VirtualLoop::run_next(TimePoint until) {
  if (tasks_->heap.empty() || tasks_->heap.next() > until) return false;
  now_ = std::max(now_, tasks_->heap.next());
  current_ = tasks_->heap.next_timer();
  Task task = tasks_->heap.pop();
  const Count running(running_);
  task();
  return true;
}

void VirtualLoop::check_may_drive() const {
  if (program_ == nullptr) return;
  throw std::logic_error(
      "a program with its own thread cannot drive its VirtualLoop; wait for a future, or call "
      "run_for()");
}

bool VirtualLoop::poll() {
  if (program_ != nullptr) return false;
  bool any = false;
  const std::uint64_t end = tasks_->heap.sequence();
  while (!tasks_->heap.empty() && tasks_->heap.next_sequence() < end && run_next(now_))
    any = true;
  return any;
}

bool VirtualLoop::run_until_idle(Duration at_most) {
  check_may_drive();
  const TimePoint end = now_ + at_most;
  while (run_next(end)) {
  }
  return tasks_->heap.empty();
}

bool VirtualLoop::run_until(const std::function<bool()>& done, Duration at_most) {
  check_may_drive();
  const TimePoint end = now_ + at_most;
  while (!done()) {
    if (!run_next(end)) return false;
  }
  return true;
}

void VirtualLoop::run_for(Duration duration) {
  const TimePoint end = now_ + duration;
  if (program_ != nullptr) {
    Waiter never;
    program_->wait(never, end);
    return;
  }
  while (run_next(end)) {
  }
  now_ = std::max(now_, end);
}

void VirtualLoop::advance(Duration duration) { now_ += duration; }

void VirtualLoop::wait(Waiter& waiter, const std::optional<TimePoint>& deadline) {
  detail::run_nested_wait_hook();
  if (program_ != nullptr) {
    program_->wait(waiter, deadline);
    return;
  }
  if (detail::is_nested_too_deep(waits_)) throw detail::NestedTooDeep();
  const Count waits(waits_);
  const TimePoint end = deadline.value_or(now_ + kLongestWait);
  while (!waiter.ready()) {
    if (run_next(end)) continue;
    if (deadline) {
      now_ = std::max(now_, *deadline);
      return;
    }
    throw VirtualDeadlock(
        std::string("the program waits for something that never happens: ") +
        (tasks_->heap.empty() ? "this VirtualLoop has nothing left to run"
                              : "a day of virtual time has passed") +
        ". Is a promise never set, a call never sent, a peer on another loop, or a node's own host "
        "killed or paused?");
  }
}

}  // namespace batchrpc
