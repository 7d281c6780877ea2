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

void Outlet::wait_writable(Task handler) {
  below_->wait_writable([weak = weak_from_this(), handler = std::move(handler)]() mutable {
    const auto self = weak.lock();
    if (!self || self->closed_.load(std::memory_order_relaxed)) return;
    std::unique_lock lock(self->mutex_);
    const Sent sent = self->send();
    lock.unlock();
    if (sent == Sent::blocked) return self->wait_writable(std::move(handler));
    Task ready = std::move(handler);
    ready();
  });
}

}  // namespace batchrpc::tls
