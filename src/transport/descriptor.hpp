#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "batchrpc/base/function.hpp"
#include "transport/reactor.hpp"
#include "transport/site.hpp"

namespace batchrpc::detail {

/// A socket's descriptor and the handlers that wait for it. It is closed by close(), or with its
/// last owner. Thread-safe, except that only one thread at a time may read.
///
/// The reactor reports only edges: new data, or new room. The code that reads or writes reports
/// whether it used up everything (`drained`, `full`): it got less than it asked for, as `man epoll`
/// describes. If so, the next edge will come; otherwise a wait asks the kernel again.
class Descriptor final : public Watcher, public std::enable_shared_from_this<Descriptor> {
 public:
  /// Takes ownership of `fd`, which must be non-blocking.
  Descriptor(std::shared_ptr<Site> site, int fd) : site_(std::move(site)), fd_(fd) {}
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] int fd() const noexcept { return fd_; }

  /// Calls `handler` once when reading (or writing) would not block. One wait of each kind at a
  /// time. Both throw std::system_error if the kernel cannot watch more sockets.
  void wait_readable(Task handler);
  void wait_writable(Task handler);

  /// Call expect_drained() before each attempt to read, and not_drained() after one that got all
  /// that it asked for.
  void expect_drained() noexcept { drained_.store(true, std::memory_order_relaxed); }
  void not_drained() noexcept { drained_.store(false, std::memory_order_relaxed); }
  /// The same for writing.
  void expect_full() noexcept { full_.store(true, std::memory_order_relaxed); }
  void not_full() noexcept { full_.store(false, std::memory_order_relaxed); }

  /// Handles an edge where the site runs the loop's events.
  void happened(std::uint32_t events) override;

  /// Destroys the waiting handlers.
  void close();

 private:
  void handle(std::uint32_t events);
  void arm(bool anew);  // the caller must hold mutex_

  const std::shared_ptr<Site> site_;
  const int fd_;
  // Set before an attempt, so that an edge reported between the attempt and its end is not lost.
  std::atomic<bool> drained_{false};
  std::atomic<bool> full_{false};

  std::mutex mutex_;  // guards what follows
  Task readable_;
  Task writable_;
  std::uint64_t name_ = 0;     // the reactor's name for it; 0: not registered yet
  bool watches_room_ = false;  // only while a handler waits for room, and until after its call
  bool at_end_ = false;        // the end, or an error, is ready to be read, and no edge follows
  bool closed_ = false;
};

}  // namespace batchrpc::detail
