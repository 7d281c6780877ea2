#pragma once

#include <asio/posix/stream_descriptor.hpp>
#include <memory>
#include <mutex>
#include <utility>

#include "batchrpc/base/function.hpp"
#include "transport/asio_core.hpp"

namespace batchrpc::detail {

/// A socket's descriptor and who waits for it. Operations under way in Asio share it; it is closed
/// by close(), which its user calls, or with the io_context.
class Descriptor : public std::enable_shared_from_this<Descriptor> {
 public:
  /// Takes `fd`, which does not block.
  Descriptor(asio::io_context& io, int fd) : socket_(io, fd), fd_(fd) {}

  [[nodiscard]] int fd() const noexcept { return fd_; }

  /// Calls `handler` once when reading, or writing, would not block. One of each at a time.
  void wait_readable(Task handler) {
    wait(asio::posix::stream_descriptor::wait_read, readable_, std::move(handler));
  }
  void wait_writable(Task handler) {
    wait(asio::posix::stream_descriptor::wait_write, writable_, std::move(handler));
  }

  /// Destroys the waiting handlers.
  void close() {
    Task readable;
    Task writable;
    {
      const std::lock_guard lock(mutex_);
      std::swap(readable, readable_);
      std::swap(writable, writable_);
    }
    asio::error_code ignored;
    socket_.close(ignored);
  }

 private:
  void wait(asio::posix::stream_descriptor::wait_type what, Task& place, Task handler) {
    {
      const std::lock_guard lock(mutex_);
      std::swap(place, handler);
    }
    socket_.async_wait(what, [self = shared_from_this(), &place](const asio::error_code&) {
      Task ready;
      {
        const std::lock_guard lock(self->mutex_);
        std::swap(ready, place);
      }
      if (ready) ready();
    });
  }

  std::mutex mutex_;  // of the two handlers
  Task readable_;
  Task writable_;
  asio::posix::stream_descriptor socket_;
  const int fd_;
};

}  // namespace batchrpc::detail
