#include "batchrpc/future/wait.hpp"

#include <utility>

#include "base/per_thread.hpp"

namespace batchrpc {

void Waiter::notify() noexcept {
  // All under the lock, which the waiter's destructor takes once more.
  const std::lock_guard lock(mutex_);
  ready_.store(true, std::memory_order_release);
  if (interrupt_ != nullptr) interrupt_(interrupt_argument_);
  changed_.notify_one();
}

void Waiter::nudge() noexcept {
  const std::lock_guard lock(mutex_);
  nudged_ = true;
  changed_.notify_one();
}

bool Waiter::sleep(const std::optional<TimePoint>& deadline) {
  std::unique_lock lock(mutex_);
  const auto awake = [this] { return ready() || nudged_; };
  if (deadline) {
    changed_.wait_until(lock, *deadline, awake);
  } else {
    changed_.wait(lock, awake);
  }
  nudged_ = false;
  return ready();
}

void Waiter::set_interrupt(void (*interrupt)(void*) noexcept, void* argument) noexcept {
  const std::lock_guard lock(mutex_);
  interrupt_ = interrupt;
  interrupt_argument_ = argument;
}

WaitContext::~WaitContext() = default;

namespace {

class Sleeping final : public WaitContext {
 public:
  void wait(Waiter& waiter, const std::optional<TimePoint>& deadline) override {
    while (!waiter.sleep(deadline) && !(deadline && now() >= *deadline)) {
    }
  }
  [[nodiscard]] TimePoint now() const noexcept override { return std::chrono::steady_clock::now(); }
};

struct ThisThread {
  std::shared_ptr<WaitContext> scoped;
  std::weak_ptr<WaitContext> suggested;
  const WaitContext* suggested_address = nullptr;
  detail::WaitGuard* innermost_guard = nullptr;
};

ThisThread& this_thread() noexcept { return detail::per_thread<ThisThread>(); }

}  // namespace

std::shared_ptr<WaitContext> WaitContext::current() {
  ThisThread& thread = this_thread();
  if (thread.scoped) return thread.scoped;
  if (auto suggested = thread.suggested.lock()) return suggested;
  return std::make_shared<Sleeping>();
}

void WaitContext::suggest(const std::shared_ptr<WaitContext>& context) noexcept {
  ThisThread& thread = this_thread();
  // Even an expired weak pointer keeps its control block allocated. So no other live context can
  // have this address.
  if (thread.suggested_address == context.get() && !thread.suggested.expired()) return;
  thread.suggested = context;
  thread.suggested_address = context.get();
}

namespace detail {

WaitGuard::WaitGuard() noexcept : outer_(std::exchange(this_thread().innermost_guard, this)) {}

WaitGuard::~WaitGuard() { this_thread().innermost_guard = outer_; }

WaitGuard* WaitGuard::innermost() noexcept { return this_thread().innermost_guard; }

void WaitGuard::check(const StateBase& state) {
  for (WaitGuard* guard = innermost(); guard != nullptr; guard = guard->outer_)
    guard->check_wait(state);
}

}  // namespace detail

WaitScope::WaitScope(std::shared_ptr<WaitContext> context) noexcept
    : previous_(std::exchange(this_thread().scoped, std::move(context))) {}

WaitScope::~WaitScope() { this_thread().scoped = std::move(previous_); }

}  // namespace batchrpc
