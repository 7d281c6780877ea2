#include "transport/descriptor.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace batchrpc::detail {

using asio::posix::stream_descriptor;

Descriptor::~Descriptor() { release_writer(); }

void Descriptor::wait_readable(Task handler) {
  const std::lock_guard lock(mutex_);
  if (!socket_.is_open()) return;  // it was closed by another thread
  std::swap(readable_, handler);
  socket_.async_wait(stream_descriptor::wait_read,
                     [self = shared_from_this()](const asio::error_code&) {
                       run_as(self->guest_, [self] { self->readable(); });
                     });
}

void Descriptor::readable() {
  Task ready;
  {
    const std::lock_guard lock(mutex_);
    std::swap(ready, readable_);
  }
  if (ready) ready();
}

void Descriptor::wait_writable(Task handler) {
  const std::lock_guard guard(mutex_);
  std::swap(writable_, handler);
  asio::error_code error;
  if (!writer_.is_open()) {
    const int copy = ::fcntl(fd_, F_DUPFD_CLOEXEC, 0);
    if (copy >= 0) writer_.assign(copy, error);
    if (error) ::close(copy);
  }
  // Without another descriptor to be had, the socket's own does.
  stream_descriptor& waiting = writer_.is_open() ? writer_ : socket_;
  waiting.async_wait(stream_descriptor::wait_write,
                     [self = shared_from_this()](const asio::error_code& aborted) {
                       if (!aborted) run_as(self->guest_, [self] { self->writable(); });
                     });
}

void Descriptor::writable() {
  Task ready;
  {
    const std::lock_guard lock(mutex_);
    release_writer();
    std::swap(ready, writable_);
  }
  if (ready) ready();
}

void Descriptor::close() {
  Task readable;  // destroyed after the lock
  Task writable;
  const std::lock_guard lock(mutex_);
  std::swap(readable, readable_);
  std::swap(writable, writable_);
  release_writer();
  asio::error_code ignored;
  socket_.close(ignored);
}

void Descriptor::release_writer() {
  // Not close(): the socket lives on by its other descriptor, and so would this one's registration.
  if (writer_.is_open()) ::close(writer_.release());
}

}  // namespace batchrpc::detail
