#include "transport/presence.hpp"

#include <utility>

#include "batchrpc/future/future.hpp"
#include "transport/nested_wait.hpp"

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
  std::optional<Promise<void>> left;  // set without the lock
  {
    const std::lock_guard lock(presence_.mutex_);
    --presence_.count_;
    if (presence_.count_ <= presence_.awaited_) left.swap(presence_.left_);
  }
  if (left) left->set_value();
}

std::size_t Presence::here() const noexcept {
  std::size_t count = 0;
  for (const Scope* scope = innermost(); scope != nullptr; scope = scope->outer_)
    count += &scope->presence_ == this ? 1 : 0;
  return count;
}

std::size_t Presence::wait_for_others(TimePoint deadline) {
  Future<void> others_left;
  {
    const std::lock_guard lock(mutex_);
    awaited_ = here();
    if (count_ <= awaited_) return 0;
    others_left = left_.emplace().get_future();
  }
  wait_if_not_too_deep(others_left, deadline);
  const std::lock_guard lock(mutex_);
  left_.reset();
  return count_ - awaited_;
}

}  // namespace batchrpc::detail
