#include "transport/owned_core.hpp"

#include <pthread.h>
#include <sched.h>

#include <new>
#include <utility>

#include "base/start_thread.hpp"
#include "batchrpc/base/error.hpp"
#include "transport/driven.hpp"
#include "transport/nested_wait.hpp"
#include "transport/signals_blocked.hpp"
#include "transport/turn_end.hpp"

namespace batchrpc::detail {

/// A thread's stay in the drive of a loop; on that thread's stack.
class OwnedCore::Frame final : public Driven {
 public:
  Frame(OwnedCore& core, bool io_thread) noexcept
      : Driven(&core), core_(core), io_thread_(io_thread) {}
  ~Frame() {
    if (!std::exchange(active_, false)) return;
    if (io_thread_) {
      core_.drive_.release_by_io();
    } else {
      core_.drive_.release(&OwnedCore::has_foreign_work, &core_);
    }
  }

  [[nodiscard]] bool active() const noexcept { return active_; }
  [[nodiscard]] bool io_thread() const noexcept { return io_thread_; }

  /// Lets others drive while this thread does something else; the task that it is in stays on its
  /// stack.
  void suspend() override {
    active_ = false;
    core_.drive_.release_at_once();
  }
  void resume() override { active_ = core_.drive_.resume(io_thread_); }

  /// Has another thread drive for now. Returns whether this one drives again: not when `waiter` is
  /// ready or the deadline has passed and no task waits below to be gone on with.
  bool yield(Waiter& waiter, const std::optional<TimePoint>& deadline) {
    suspend();
    active_ = core_.drive_.acquire(waiter, deadline, io_thread_);
    if (!active_ && (depth > 0 || io_thread_)) resume();
    return active_;
  }

  int depth = 0;  // of waits

 private:
  OwnedCore& core_;
  const bool io_thread_;
};

namespace {

/// Runs a step of the loop. A task for which there is no memory fails alone: the loop has other
/// work, and nobody else to tell.
template <class Step>
void run_alone(Step&& step) {
  try {
    step();
  } catch (const std::bad_alloc&) {  // NOLINT
  }
}

/// Events are dispatched by whoever drives, and so run there.
class OwnSite final : public Site {
 public:
  OwnSite() : Site(std::make_shared<Reactor>()) {}
  void run(Task task) override { task(); }
  void hold() override {}
  void release() override {}
};

/// The I/O thread waits by driving, whichever node a task on it has called last.
class WaitByDriving final : public WaitContext {
 public:
  explicit WaitByDriving(LoopCore& core) : core_(core) {}
  void wait(Waiter& waiter, const std::optional<TimePoint>& deadline) override {
    core_.wait(waiter, deadline);
  }
  [[nodiscard]] TimePoint now() const noexcept override { return LoopCore::now(); }

 private:
  LoopCore& core_;
};

}  // namespace

OwnedCore::OwnedCore(const SocketLoopOptions& options)
    : LoopCore(std::make_shared<OwnSite>()),
      options_(options),
      drive_(options.lease, &OwnedCore::wake_unless_driving, this),
      io_thread_ended_(end_of_io_thread_.get_future()) {}

void OwnedCore::start() {
  {
    const SignalsBlocked blocked;
    thread_ = start_thread("the I/O of a node",
                           [self = std::static_pointer_cast<OwnedCore>(shared_from_this())] {
                             self->run_io_thread();
                           });
  }
  pthread_setname_np(thread_.native_handle(), "batchrpc-io");
}

void OwnedCore::stop() {
  if (stopped_.exchange(true)) return;
  drive_.stop(is_driving());
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();  // it ends, and with it the core, when it leaves the task that it is in
  } else if (thread_.joinable()) {
    // It may be in a task that waits for what this one drives.
    wait_if_not_too_deep(io_thread_ended_);
    thread_.join();
  }
  timers().stop();
  posted_.stop();
  deferred_.stop();
}

bool OwnedCore::is_driving() const noexcept { return Driven::find(this) != nullptr; }

void OwnedCore::wait(Waiter& waiter, const std::optional<TimePoint>& deadline) {
  run_nested_wait_hook();
  if (waiter.ready()) return;
  auto* const frame = static_cast<Frame*>(Driven::find(this));
  const Driven::Suspension others(frame);
  if (frame != nullptr) {
    wait_driving(*frame, waiter, deadline);
  } else {
    wait_outside(waiter, deadline);
  }
}

void OwnedCore::wait_outside(Waiter& waiter, const std::optional<TimePoint>& deadline) {
  if (drive_.acquire(waiter, deadline)) {
    Frame frame(*this, false);
    drive_until(frame, waiter, deadline);
  }
  if (drive_.stopped()) sleep_until_ready(waiter, deadline);
}

void OwnedCore::wait_driving(Frame& frame, Waiter& waiter,
                             const std::optional<TimePoint>& deadline) {
  const bool too_deep = is_nested_too_deep(frame.depth);
  if (too_deep && frame.io_thread()) {
    throw NestedTooDeep();
  }
  if (!too_deep && !drive_.stopped()) {
    ++frame.depth;
    timers().rearm();
    drive_until(frame, waiter, deadline);
    --frame.depth;
    if (!drive_.stopped()) return;
  }
  if (frame.active()) frame.suspend();
  sleep_until_ready(waiter, deadline);
  frame.resume();
}

void OwnedCore::drive_until(Frame& frame, Waiter& waiter,
                            const std::optional<TimePoint>& deadline) {
  TimerId alarm = 0;
  if (deadline) alarm = timers().schedule(*deadline, [] {});  // to come out of the reactor
  waiter.set_interrupt(&OwnedCore::wake_unless_driving, this);
  while (!waiter.ready() && !drive_.stopped() && !(deadline && now() >= *deadline)) {
    if (!drive_.must_yield()) {
      turn();
      continue;
    }
    waiter.set_interrupt(nullptr, nullptr);
    if (!frame.yield(waiter, deadline)) break;
    waiter.set_interrupt(&OwnedCore::wake_unless_driving, this);
  }
  waiter.set_interrupt(nullptr, nullptr);
  if (deadline) timers().cancel(alarm);
}

bool OwnedCore::run_first(PostQueue& queue) {
  Task task = queue.pop_or_sleep();
  if (!task) return false;
  run_alone(task);
  return true;
}

// Taken out first: a handler that waits drives on with the next.
bool OwnedCore::run_event() {
  if (next_event_ == end_of_events_) return false;
  const epoll_event event = events_[next_event_++];
  run_alone([&] { reactor().dispatch(event); });
  return true;
}

// Only with no event left. Returns whether somebody has woken this thread. Who does sets woken_ and
// then reads asleep_; here it is the other way round, so that one of the two sees the other.
bool OwnedCore::look(bool may_sleep) {
  if (may_sleep) {
    asleep_.store(true);
    if (woken_.load()) may_sleep = false;
  }
  next_event_ = 0;
  end_of_events_ = reactor().wait(events_, may_sleep);
  asleep_.store(false);
  return woken_.exchange(false);
}

void OwnedCore::turn() {
  constexpr unsigned kInARow = 32;  // then the sockets have a turn
  const bool posted = run_first(posted_);
  if (!posted && run_event()) return;
  if (posted || run_first(deferred_)) {
    const bool is_over = take_turn_end();
    if (++tasks_in_a_row_ % kInARow != 0 && !is_over) return;
    if (!run_event()) look(false);
    if (posted) run_first(deferred_);
    return;
  }
  if (options_.busy_poll > Duration::zero() && gate_.may_spin(coarse_now()) && spin()) return;
  look(true);
  run_event();
}

bool OwnedCore::spin() {
  const TimePoint begin = now();
  TimePoint last = begin;
  while (true) {
    const bool woken = look(false);
    if (run_event() || woken) {
      gate_.hit();
      return true;
    }
    ::sched_yield();
    const TimePoint time = now();
    if (time - last > SpinGate::kPreempted) {
      gate_.preempted(time, time - last);
      return false;
    }
    if (time - begin > options_.busy_poll) {
      gate_.miss();
      return false;
    }
    last = time;
  }
}

void OwnedCore::post(Task task) {
  const bool foreign = !drive_.is_favoured();
  const bool asleep = posted_.push(std::move(task), foreign);
  if (asleep) wake_unless_driving(this);
  if (foreign) drive_.want_driver(TimePoint::min());
}

// Whoever drives comes to it when the sockets that the reactor found ready have had their turns.
void OwnedCore::defer(Task task) {
  if (!is_driving()) return post(std::move(task));
  deferred_.push(std::move(task), true);
}

TimerId OwnedCore::schedule(TimePoint when, Task task) {
  const TimerId timer = timers().schedule(when, std::move(task));
  if (!drive_.is_favoured()) drive_.want_driver(when);
  return timer;
}

bool OwnedCore::poll() {
  const auto run_ready = [this] {
    bool any = false;
    for (int i = 0; i < 64 && run_first(posted_); ++i)
      any = true;
    if (next_event_ == end_of_events_) look(false);
    for (int i = 0; i < 256 && (run_event() || run_first(deferred_)); ++i)
      any = true;
    return any;
  };
  if (is_driving()) {
    timers().rearm();
    return run_ready();
  }
  if (!drive_.try_acquire()) return false;
  const Frame frame(*this, false);
  return run_ready();
}

void OwnedCore::run_io_thread() {
  const WaitScope scope(std::make_shared<WaitByDriving>(*this));
  while (drive_.acquire_for_io()) {
    const Frame frame(*this, true);
    while (!drive_.must_yield())
      turn();
  }
  end_of_io_thread_.set_value();
}

void OwnedCore::wake() noexcept {
  if (!woken_.exchange(true) && asleep_.load()) reactor().ring();
}

void OwnedCore::wake_unless_driving(void* core) noexcept {
  auto& self = *static_cast<OwnedCore*>(core);
  if (!self.is_driving()) self.wake();
}

bool OwnedCore::has_foreign_work(void* core) noexcept {
  auto& self = *static_cast<OwnedCore*>(core);
  return self.posted_.has_foreign() || self.deferred_.has_foreign();
}

}  // namespace batchrpc::detail
