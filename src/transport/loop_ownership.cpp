#include "transport/loop_ownership.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace batchrpc::detail {
namespace {

TimePoint now() noexcept { return std::chrono::steady_clock::now(); }

const void* this_thread() noexcept {
  thread_local char tag;
  return &tag;
}

}  // namespace

LoopOwnership::LoopOwnership(Duration lease, void (*wake_driver)(void*) noexcept, void* argument)
    : lease_(lease), wake_driver_(wake_driver), wake_argument_(argument) {}

bool LoopOwnership::is_favoured() const noexcept {
  return favoured_.load(std::memory_order_relaxed) == this_thread();
}

void LoopOwnership::take(bool io_thread) {
  holder_ = io_thread ? Holder::io_thread : Holder::waiting_thread;
  driven_.store(true);
  yield_.store(io_thread ? !followers_.empty() : has_urgent());
  if (!io_thread) favoured_.store(this_thread(), std::memory_order_relaxed);
}

bool LoopOwnership::has_urgent() const noexcept {
  return std::any_of(followers_.begin(), followers_.end(),
                     [](const Follower* follower) { return follower->urgent; });
}

void LoopOwnership::ask_to_yield() {
  if (!yield_.exchange(true)) wake_driver_(wake_argument_);
}

bool LoopOwnership::acquire(Waiter& waiter, const std::optional<TimePoint>& deadline,
                            bool io_thread) {
  std::unique_lock lock(mutex_);
  if (stopped_) return false;
  if (holder_ == Holder::nobody) return take(io_thread), true;
  if (holder_ == Holder::offered && !io_thread && !has_urgent()) {
    // The one that it is offered to has not come round yet; this thread is awake already.
    for (Follower* follower : followers_)
      follower->offered = false;
    return take(io_thread), true;
  }
  if (holder_ == Holder::io_thread) ask_to_yield();
  return follow(std::move(lock), {&waiter, false}, deadline, io_thread);
}

bool LoopOwnership::resume(bool io_thread) {
  std::unique_lock lock(mutex_);
  if (stopped_) return false;
  if (holder_ == Holder::nobody) return take(io_thread), true;
  if (holder_ != Holder::offered) ask_to_yield();
  Waiter never;
  return follow(std::move(lock), {&never, true}, std::nullopt, io_thread);
}

bool LoopOwnership::follow(std::unique_lock<std::mutex> lock, Follower self,
                           const std::optional<TimePoint>& deadline, bool io_thread) {
  followers_.push_back(&self);
  while (true) {
    lock.unlock();
    const bool ready = self.waiter->sleep(deadline);
    lock.lock();
    const bool mine = !stopped_ && (self.offered || holder_ == Holder::nobody);
    if (!mine && !ready && !stopped_ && !(deadline && now() >= *deadline)) continue;
    std::erase(followers_, &self);
    if (mine) take(io_thread);
    return mine;
  }
}

bool LoopOwnership::try_acquire() {
  const std::lock_guard lock(mutex_);
  if (holder_ != Holder::nobody || stopped_) return false;
  take(false);
  return true;
}

void LoopOwnership::pass_on() {
  if (stopped_) {
    holder_ = Holder::nobody;
    driven_.store(false);
    for (Follower* follower : followers_)
      follower->waiter->nudge();
    stopped_changed_.notify_all();
  } else if (!followers_.empty()) {
    const auto urgent = std::find_if(followers_.begin(), followers_.end(),
                                     [](const Follower* follower) { return follower->urgent; });
    Follower& next = urgent != followers_.end() ? **urgent : *followers_.front();
    next.offered = true;
    holder_ = Holder::offered;
    next.waiter->nudge();
  } else {
    holder_ = Holder::nobody;
    driven_.store(false);
  }
}

void LoopOwnership::release(bool (*work_left)(void*) noexcept, void* argument) {
  const std::lock_guard lock(mutex_);
  pass_on();
  if (holder_ != Holder::nobody || stopped_) return;
  lease_until_ = work_left(argument) ? TimePoint{} : now() + lease_;
  set_alarm(lease_until_);
}

void LoopOwnership::release_at_once() {
  const std::lock_guard lock(mutex_);
  pass_on();
  if (holder_ == Holder::nobody) end_lease();
}

bool LoopOwnership::acquire_for_io() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    if (holder_ == Holder::nobody) {
      if (lease_until_ <= now()) {
        take(true);
        return true;
      }
      set_alarm(lease_until_);
    }
    lock.unlock();
    std::uint64_t expirations = 0;
    while (::read(alarm_.fd(), &expirations, sizeof expirations) < 0 && errno == EINTR) {
    }
    lock.lock();
    alarm_at_ = TimePoint::max();
  }
  return false;
}

void LoopOwnership::release_by_io() {
  const std::lock_guard lock(mutex_);
  pass_on();
}

void LoopOwnership::want_driver(TimePoint when) {
  if (driven_.load()) return;
  const std::lock_guard lock(mutex_);
  if (holder_ == Holder::nobody && when < lease_until_) end_lease();
}

void LoopOwnership::end_lease() {
  lease_until_ = {};
  set_alarm(lease_until_);
}

void LoopOwnership::set_alarm(TimePoint when) noexcept {
  if (alarm_at_ <= when) return;
  alarm_at_ = when;
  alarm_.set(when);
}

void LoopOwnership::stop(bool driven_here) {
  std::unique_lock lock(mutex_);
  stopped_ = true;
  yield_ = true;
  end_lease();
  for (Follower* follower : followers_)
    follower->waiter->nudge();
  wake_driver_(wake_argument_);
  if (holder_ == Holder::offered) pass_on();
  if (!driven_here) {
    stopped_changed_.wait(lock, [this] { return holder_ == Holder::nobody; });
  }
}

}  // namespace batchrpc::detail
