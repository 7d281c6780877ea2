#include "tls/outlet.hpp"

#include <span>
#include <utility>

namespace batchrpc::tls {
namespace {

constexpr std::size_t kKept = 4 * 1024;  // the memory that an idle stream keeps

}  // namespace

Outlet::Sent Outlet::send() noexcept {
  if (error_) return Sent::failed;
  if (left() == 0) left_ = bytes_.size();
  while (left() > 0) {
    const std::span<const std::byte> rest = std::span<const std::byte>(bytes_).last(left());
    const IoResult result = below_->try_write(std::span(&rest, 1));
    if (result.error) {
      error_ = result.error;
      return Sent::failed;
    }
    if (result.bytes == 0) return Sent::blocked;
    left_ -= result.bytes;
  }
  bytes_.clear();
  if (bytes_.capacity() > kKept) bytes_ = {};
  return Sent::all;
}

void Outlet::send_later() {
  {
    const std::lock_guard lock(waiting_);
    if (closed_ || std::exchange(waits_, true)) return;
  }
  loop_->post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    const std::lock_guard lock(self->mutex_);  // no attempt to write is under way
    self->wait_below();
  });
}

void Outlet::wait_writable(Task handler) {
  {
    const std::lock_guard lock(waiting_);
    handler_ = std::move(handler);
    if (std::exchange(waits_, true)) return;
  }
  wait_below();
}

void Outlet::wait_below() {
  below_->wait_writable([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->on_writable();
  });
}

void Outlet::on_writable() {
  Task ready;
  {
    // A thread that writes meanwhile waits for the lock. It must find that nothing waits any
    // longer.
    const std::lock_guard lock(mutex_);
    if (send() == Sent::blocked) return wait_below();
    const std::lock_guard waiting(waiting_);
    waits_ = false;
    std::swap(ready, handler_);
  }
  if (ready) ready();
}

void Outlet::close() noexcept {
  Task dropped;  // destroyed without the lock
  const std::lock_guard lock(waiting_);
  closed_ = true;
  std::swap(dropped, handler_);
}

}  // namespace batchrpc::tls
