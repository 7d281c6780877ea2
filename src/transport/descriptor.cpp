#include "transport/descriptor.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <utility>

namespace batchrpc::detail {
namespace {

constexpr std::uint32_t kEnd = EPOLLRDHUP | EPOLLHUP | EPOLLERR;

}  // namespace

Descriptor::~Descriptor() { close(); }

// The first time whatever is the case already is an edge.
void Descriptor::arm(bool anew) {
  const std::uint32_t what = EPOLLIN | EPOLLRDHUP | EPOLLET | (watches_room_ ? EPOLLOUT : 0U);
  if (name_ == 0) {
    name_ = reactor_->add(shared_from_this(), fd_, what);
  } else if (anew) {
    reactor_->rearm(name_, fd_, what);
  }
}

void Descriptor::wait_readable(Task handler) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;  // by another thread
  std::swap(readable_, handler);
  arm(at_end_ || !drained_.load(std::memory_order_relaxed));
}

// Room is watched for no longer than somebody waits: each time that the other side of a Unix socket
// reads, it would be an event.
void Descriptor::wait_writable(Task handler) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  std::swap(writable_, handler);
  const bool watched = std::exchange(watches_room_, true);
  arm(!watched || !full_.load(std::memory_order_relaxed));
}

// Writing first: a handler of what was read may wait for what that writes.
void Descriptor::happened(std::uint32_t events) {
  Task writable;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    if ((events & kEnd) != 0) at_end_ = true;
    if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) {
      not_full();
      std::swap(writable, writable_);
      if (!writable && std::exchange(watches_room_, false)) arm(true);
    }
  }
  if (writable) writable();
  Task readable;
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || (events & (EPOLLIN | kEnd)) == 0) return;
    not_drained();
    std::swap(readable, readable_);
  }
  if (readable) readable();
}

void Descriptor::close() {
  Task readable;  // destroyed after the lock
  Task writable;
  const std::lock_guard lock(mutex_);
  if (std::exchange(closed_, true)) return;
  std::swap(readable, readable_);
  std::swap(writable, writable_);
  if (name_ != 0) reactor_->remove(name_);
  ::close(fd_);
}

}  // namespace batchrpc::detail
