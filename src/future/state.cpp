#include "batchrpc/future/state.hpp"

#include <string>
#include <thread>

#include "batchrpc/future/wait.hpp"

namespace batchrpc::detail {

/// The states whose callbacks this thread must run. The loop keeps nothing in local variables. So a
/// callback that waits may run the rest of the queue in a nested loop, and neither loop disturbs
/// the other. A state stays in the queue as long as one of its callbacks has not returned. During
/// that time, callbacks that would move the value from under it are skipped.
class Trampoline {
 public:
  static Trampoline& of_this_thread() noexcept {
    static constinit thread_local Trampoline trampoline;
    return trampoline;
  }

  /// Takes over a reference to `state`, whose to_run_ is set.
  void run(StateBase* state) noexcept {
    state->next_running_ = nullptr;
    (last_ == nullptr ? first_ : last_->next_running_) = state;
    last_ = state;
    run_unless_running();
  }

  void run_unless_running() noexcept {
    if (running_) return;
    run_until([] { return false; });
  }

  /// Whether a callback of `state` is on this thread's stack.
  [[nodiscard]] bool is_in_callback_of(const StateBase& state) const noexcept {
    for (const Frame* frame = top_; frame != nullptr; frame = frame->below) {
      if (frame->state == &state) return true;
    }
    return false;
  }

 private:
  friend class NestedWait;

  struct Frame {
    const StateBase* state;
    const Frame* below;
    int depth;
  };

  template <class Done>
  void run_until(Done done) noexcept {
    running_ = true;
    while (!done() && run_next()) {
    }
    running_ = false;
  }

  bool run_next() noexcept {
    StateBase* before = nullptr;
    while (StateBase* const state = next_of(before)) {
      const bool in_callback = is_in_callback_of(*state);
      if (Callback* const callback = state->next_callback(in_callback)) {
        if (callback->has_reference && std::exchange(state->extra_reference_, true)) {
          state->release();
        }
        const Frame frame{state, top_, depth() + 1};
        top_ = &frame;
        callback->run(*callback, *state);
        top_ = frame.below;
        return true;
      }
      if (in_callback) {
        before = state;
        continue;
      }
      // Read first: once the state is idle, its members belong to another thread.
      StateBase* const after = state->next_running_;
      if (!state->become_idle_and_release()) continue;
      next_of(before) = after;
      if (after == nullptr) last_ = before;
    }
    return false;
  }

  StateBase*& next_of(StateBase* state) noexcept {
    return state == nullptr ? first_ : state->next_running_;
  }
  [[nodiscard]] int depth() const noexcept { return top_ == nullptr ? 0 : top_->depth; }

  StateBase* first_ = nullptr;
  StateBase* last_ = nullptr;
  const Frame* top_ = nullptr;
  bool running_ = false;
};

/// Before a thread waits, it runs the callbacks that it has put off, because they may complete the
/// awaited future. It stops when that future is ready. During the wait it counts as not running
/// callbacks, so that callbacks of futures that complete meanwhile run at once.
class NestedWait {
 public:
  static constexpr int kDeepest = 256;

  template <class Done>
  explicit NestedWait(Done done)
      : trampoline_(Trampoline::of_this_thread()), was_running_(trampoline_.running_) {
    if (trampoline_.depth() >= kDeepest) {
      throw Overloaded(
          "callbacks that wait for futures are nested " + std::to_string(kDeepest) +
          " deep, which is the limit; use then() or co_await, which do not block the thread");
    }
    trampoline_.run_until(done);
  }
  ~NestedWait() { trampoline_.running_ = was_running_; }
  NestedWait(const NestedWait&) = delete;
  NestedWait& operator=(const NestedWait&) = delete;

 private:
  Trampoline& trampoline_;
  bool was_running_;
};

/// A waiting thread. Its callback does not wait for its turn. So a woken thread need not wait for
/// slow callbacks, and a thread whose deadline has passed can always remove its callback.
struct BlockedThread final : Callback {
  BlockedThread(Run run_function, bool moves_the_value) noexcept
      : Callback(run_function, moves_the_value) {}

  static void wake(Callback& self, StateBase& /*source*/) noexcept {
    static_cast<BlockedThread&>(self).waiter.notify();
  }
  /// The same, called in its turn.
  static void wake_in_turn(Callback& self, StateBase& source) noexcept { wake(self, source); }

  void sleep_until_notified() {
    while (!waiter.ready())
      waiter.sleep();
  }

  Waiter waiter;
};

namespace {

/// Wakes the waiting threads in `newest` and returns the other callbacks, oldest first.
Callback* wake_and_reverse(Callback* newest, StateBase& source) noexcept {
  Callback* oldest = nullptr;
  while (newest != nullptr) {
    Callback* callback = std::exchange(newest, newest->next);
    if (callback->run == &BlockedThread::wake) {
      callback->run(*callback, source);
    } else {
      callback->next = std::exchange(oldest, callback);
    }
  }
  return oldest;
}

}  // namespace

StateBase::~StateBase() = default;

bool StateBase::cancel() noexcept { return false; }

void StateBase::complete_with_callbacks() noexcept {
  run_callbacks(callbacks(head_.exchange(kReady, std::memory_order_acq_rel)));
}

// Called by the thread that changed head_ from pending or idle to ready. That thread runs the
// callbacks until it makes the state idle. Consumes a reference.
void StateBase::run_callbacks(Callback* newest) noexcept {
  to_run_ = wake_and_reverse(newest, *this);
  Trampoline::of_this_thread().run(this);
}

/// The next callback to run; null if there is none, or none that may run inside a callback of the
/// same state.
Callback* StateBase::next_callback(bool in_callback) noexcept {
  if (to_run_ == nullptr) {
    if (head_.load(std::memory_order_relaxed) == kReady) return nullptr;
    to_run_ = wake_and_reverse(callbacks(head_.exchange(kReady, std::memory_order_acq_rel)), *this);
  }
  if (to_run_ == nullptr || (in_callback && to_run_->consumes)) return nullptr;
  return std::exchange(to_run_, to_run_->next);
}

/// The thread that runs callbacks calls this when there are none left. Returns false if new ones
/// were added.
bool StateBase::become_idle_and_release() noexcept {
  const std::uint32_t held = extra_reference_ ? 2 : 1;
  const bool alone = holds_all(held);  // before head_ is read, as in complete()
  std::uintptr_t head = head_.load(std::memory_order_acquire);
  if (head != kReady) return false;
  if (!alone) {
    extra_reference_ = false;
    if (!head_.compare_exchange_strong(head, kIdle, std::memory_order_acq_rel)) {
      extra_reference_ = held == 2;
      return false;
    }
  }
  release(held);
  return true;
}

/// Adds `callback` unless head_ has all of `bits`. Returns the previous head_.
std::uintptr_t StateBase::push(Callback& callback, std::uintptr_t bits) noexcept {
  std::uintptr_t head = head_.load(std::memory_order_acquire);
  for (;;) {
    // A callback that looks at the value may take it away deliberately. That cannot wait for this
    // callback to return.
    if (callback.consumes && (head & kIdle) == kReady &&
        Trampoline::of_this_thread().is_in_callback_of(*this)) {
      callback.consumes = false;
    }
    if ((head & bits) == bits) return head;
    callback.next = callbacks(head);
    const std::uintptr_t next =
        head == kIdle ? kReady : reinterpret_cast<std::uintptr_t>(&callback) | (head & kReady);
    if (head_.compare_exchange_weak(head, next, std::memory_order_acq_rel)) return head;
  }
}

void StateBase::add(Callback& callback) noexcept {
  const std::uintptr_t head = push(callback, kNever);
  if (head == kIdle) {
    add_reference();
    run_callbacks(&callback);
  } else if ((head & kReady) != 0) {
    Trampoline::of_this_thread().run_unless_running();
  }
}

void StateBase::add_last(Callback& callback) noexcept {
  callback.has_reference = true;
  const std::uintptr_t head = push(callback, kNever);
  if (head == kIdle) {
    callback.has_reference = false;  // it becomes the queue's
    run_callbacks(&callback);
  } else if ((head & kReady) != 0) {
    Trampoline::of_this_thread().run_unless_running();
  }
}

bool StateBase::add_unless(std::uintptr_t bits, Callback& callback) noexcept {
  const std::uintptr_t head = push(callback, bits);
  if ((head & bits) == bits) return false;
  if ((head & kReady) != 0) Trampoline::of_this_thread().run_unless_running();
  return true;
}

/// Removes a callback. Returns false if the state is ready: then the callback has run or, if it is
/// a BlockedThread, is about to. It takes the whole stack, so that no other thread touches it, and
/// puts the rest back.
bool StateBase::remove(Callback& callback) noexcept {
  std::uintptr_t head = head_.load(std::memory_order_acquire);
  while ((head & kReady) == 0) {
    if (head != 0 && head_.compare_exchange_weak(head, 0, std::memory_order_acq_rel)) {
      Callback* newest = callbacks(head);
      Callback** link = &newest;
      while (*link != nullptr && *link != &callback)
        link = &(*link)->next;
      const bool found = *link != nullptr;
      if (found) *link = callback.next;
      put_back(newest);
      if (found) return true;
    }
    std::this_thread::yield();  // another thread that removes its callback holds the stack
    head = head_.load(std::memory_order_acquire);
  }
  return false;
}

void StateBase::put_back(Callback* newest) noexcept {
  std::uintptr_t head = head_.load(std::memory_order_acquire);
  while (newest != nullptr) {
    if (head == kIdle) {  // completed meanwhile by a thread that saw no callbacks
      if (head_.compare_exchange_weak(head, kReady, std::memory_order_acq_rel)) {
        add_reference();
        run_callbacks(newest);
        return;
      }
    } else if (callbacks(head) == nullptr) {
      const auto next = reinterpret_cast<std::uintptr_t>(newest) | head;
      if (head_.compare_exchange_weak(head, next, std::memory_order_acq_rel)) return;
    } else if (head_.compare_exchange_weak(head, head & kReady, std::memory_order_acq_rel)) {
      Callback* newer = callbacks(head);
      Callback* last = newer;
      while (last->next != nullptr)
        last = last->next;
      last->next = newest;
      newest = newer;
      head = head_.load(std::memory_order_acquire);
    }
  }
}

bool StateBase::wait(const std::optional<TimePoint>& deadline) {
  if (ready()) return true;
  if (!deadline) WaitGuard::check(*this);
  const Ref<StateBase> self = Ref<StateBase>::share(*this);  // a callback may drop the future
  const NestedWait nested([this] { return ready(); });
  BlockedThread blocked(&BlockedThread::wake, false);
  if (!add_unless(kReady, blocked)) return true;
  struct Removal {
    ~Removal() {
      if (!blocked.waiter.ready() && !state.remove(blocked)) blocked.sleep_until_notified();
    }
    StateBase& state;
    BlockedThread& blocked;
  };
  {
    const Removal removal{*this, blocked};
    const auto context = WaitContext::current();
    do {
      context->wait(blocked.waiter, deadline);
    } while (!deadline && !blocked.waiter.ready());
  }
  return ready();
}

bool StateBase::wait_for(Duration timeout) {
  if (ready()) return true;
  const TimePoint now = WaitContext::current()->now();
  if (timeout > Duration::zero() && timeout > TimePoint::max() - now) return wait(std::nullopt);
  return wait(now + timeout);
}

void StateBase::wait_until_idle() {
  wait(std::nullopt);
  if (idle()) return;
  const Ref<StateBase> self = Ref<StateBase>::share(*this);
  const NestedWait nested([this] { return idle(); });
  if (Trampoline::of_this_thread().is_in_callback_of(*this)) return;  // as in push()
  BlockedThread blocked(&BlockedThread::wake_in_turn, true);
  if (!add_unless(kIdle, blocked)) return;
  struct Notified {
    ~Notified() { blocked.sleep_until_notified(); }
    BlockedThread& blocked;
  };
  const Notified notified{blocked};
  WaitContext::current()->wait(blocked.waiter, std::nullopt);
}

void throw_no_state(const char* what) { throw InvalidArgument(what); }

std::exception_ptr broken_promise() {
  return std::make_exception_ptr(
      BrokenPromise("the promise was destroyed before it was completed; set a value or an error"));
}

std::exception_ptr dropped_by_executor() {
  return std::make_exception_ptr(
      BrokenPromise("the executor destroyed a future's callback without running it"));
}

std::exception_ptr empty_future_returned() {
  return std::make_exception_ptr(
      InvalidArgument("a callback returned an empty future (it was moved from or consumed)"));
}

}  // namespace batchrpc::detail
