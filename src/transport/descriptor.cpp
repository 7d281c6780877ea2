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
    name_ = site_->reactor().add(weak_from_this(), fd_, what);
    site_->hold();
  } else if (anew) {
    site_->reactor().rearm(name_, fd_, what);
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

// Handlers are found in the loop's turn: until then others may close this.
void Descriptor::happened(std::uint32_t events) {
  site_->run([self = shared_from_this(), events] { self->handle(events); });
}

// Writing first, and reading by an event of its own: what that writes may wait for what is read.
void Descriptor::handle(std::uint32_t events) {
  Task ready;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    const bool input = (events & (EPOLLIN | kEnd)) != 0;
    if ((events & kEnd) != 0) at_end_ = true;
    if (input) not_drained();
    if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) {
      not_full();
      std::swap(ready, writable_);
      if (!ready && std::exchange(watches_room_, false)) arm(true);
    }
    if (input && readable_) {
      if (ready) {
        arm(true);
      } else {
        std::swap(ready, readable_);
      }
    }
  }
  if (ready) ready();
}

void Descriptor::close() {
  Task readable;  // destroyed after the lock
  Task writable;
  const std::lock_guard lock(mutex_);
  if (std::exchange(closed_, true)) return;
  std::swap(readable, readable_);
  std::swap(writable, writable_);
  if (name_ != 0) {
    site_->reactor().remove(name_);
    site_->release();
  }
  ::close(fd_);
}

}  // namespace batchrpc::detail
