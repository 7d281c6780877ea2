#include "transport/guest.hpp"

#include <utility>

namespace batchrpc::detail {

void Guest::run(Task task) {
  host_->turn().run([self = shared_from_this(), task = std::move(task)]() mutable {
    const Presence::Scope scope(self->presence_);
    if (!self->left_) task();
  });
}

void Guest::hold() {
  const std::lock_guard lock(mutex_);
  if (!left_ && holds_++ == 0) host_->hold();
}

void Guest::release() {
  const std::lock_guard lock(mutex_);
  if (!left_ && --holds_ == 0) host_->release();
}

void Guest::leave() {
  const std::lock_guard lock(mutex_);
  if (!left_.exchange(true) && holds_ > 0) host_->release();
}

}  // namespace batchrpc::detail
