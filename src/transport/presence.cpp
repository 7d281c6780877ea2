#include "transport/presence.hpp"

#include <utility>

namespace batchrpc::detail {

Presence::Scope*& Presence::innermost() noexcept {
  thread_local Scope* scope = nullptr;
  return scope;
}

Presence::Scope::Scope(Presence& presence)
    : presence_(presence), outer_(std::exchange(innermost(), this)) {
  const std::lock_guard lock(presence_.mutex_);
  ++presence_.count_;
}

Presence::Scope::~Scope() {
  innermost() = outer_;
  const std::lock_guard lock(presence_.mutex_);
  --presence_.count_;
  if (presence_.waiter_ != nullptr && presence_.count_ <= presence_.awaited_) {
    std::exchange(presence_.waiter_, nullptr)->notify();
  }
}

std::size_t Presence::here() const noexcept {
  std::size_t count = 0;
  for (const Scope* scope = innermost(); scope != nullptr; scope = scope->outer_)
    count += &scope->presence_ == this ? 1 : 0;
  return count;
}

std::size_t Presence::wait_for_others(const Wait& wait, TimePoint deadline) {
  Waiter waiter;
  std::unique_lock lock(mutex_);
  awaited_ = here();
  if (count_ <= awaited_) return 0;
  waiter_ = &waiter;
  lock.unlock();
  try {
    wait(waiter, deadline);
  } catch (...) {
    lock.lock();
    waiter_ = nullptr;
    throw;
  }
  lock.lock();
  waiter_ = nullptr;
  return count_ - awaited_;
}

}  // namespace batchrpc::detail
