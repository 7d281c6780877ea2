#pragma once

#include <asio/posix/stream_descriptor.hpp>
#include <memory>
#include <mutex>

#include "batchrpc/base/function.hpp"
#include "transport/asio_core.hpp"

namespace batchrpc::detail {

/// A socket's descriptor and who waits for it. Operations under way in Asio share it; it is closed
/// by close(), which its user calls, or with the io_context.
///
/// A wait for room to write goes to a copy of the descriptor, registered for that wait only. For
/// Asio never again stops watching for room where it has done so once; every later wait for
/// something to read would then begin with an event that means nothing.
class Descriptor : public std::enable_shared_from_this<Descriptor> {
 public:
  /// Takes `fd`, which does not block.
  Descriptor(AsioCore& core, int fd)
      : guest_(core.guest()), socket_(core.io(), fd), writer_(core.io()), fd_(fd) {}
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] int fd() const noexcept { return fd_; }

  /// Calls `handler` once when reading, or writing, would not block. One of each at a time.
  void wait_readable(Task handler);
  void wait_writable(Task handler);

  /// Destroys the waiting handlers.
  void close();

 private:
  void readable();
  void writable();
  void release_writer();

  const std::shared_ptr<Guest> guest_;
  std::mutex mutex_;  // guards what follows; any thread closes
  Task readable_;
  Task writable_;
  asio::posix::stream_descriptor socket_;
  asio::posix::stream_descriptor writer_;  // closed while nobody waits to write
  const int fd_;
};

}  // namespace batchrpc::detail
