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

/// A socket's descriptor and who waits for it. Closed by close(), or when the last that shares it
/// goes. Thread-safe, but for the reading, which one thread at a time does.
///
/// The reactor tells of edges only: that something came, or that there is room again. Whoever
/// reads or writes says whether that took all there was (`drained`, `full`), as man epoll has it:
/// by less than was asked for. Then the next edge will come; else a wait asks the kernel anew.
class Descriptor final : public Watcher, public std::enable_shared_from_this<Descriptor> {
 public:
  /// Takes `fd`, which does not block.
  Descriptor(std::shared_ptr<Site> site, int fd) : site_(std::move(site)), fd_(fd) {}
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] int fd() const noexcept { return fd_; }

  /// Calls `handler` once when reading, or writing, would not block. One of each at a time. Throw
  /// std::system_error where the kernel takes no more sockets to watch.
  void wait_readable(Task handler);
  void wait_writable(Task handler);

  /// Before each try to read, and after one that was given all that it asked for.
  void expect_drained() noexcept { drained_.store(true, std::memory_order_relaxed); }
  void not_drained() noexcept { drained_.store(false, std::memory_order_relaxed); }
  /// The same of writing.
  void expect_full() noexcept { full_.store(true, std::memory_order_relaxed); }
  void not_full() noexcept { full_.store(false, std::memory_order_relaxed); }

  /// An edge, which is handled where the site runs what its loop waits for.
  void happened(std::uint32_t events) override;

  /// Destroys the waiting handlers.
  void close();

 private:
  void handle(std::uint32_t events);
  void arm(bool anew);  // with mutex_ held

  const std::shared_ptr<Site> site_;
  const int fd_;
  // Set before a try, so that an edge which is told of between the try and its end is not lost.
  std::atomic<bool> drained_{false};
  std::atomic<bool> full_{false};

  std::mutex mutex_;  // guards what follows
  Task readable_;
  Task writable_;
  std::uint64_t name_ = 0;     // the reactor's; 0: not there yet
  bool watches_room_ = false;  // only while, and until after, somebody waits for it
  bool at_end_ = false;        // the end, or an error, is there to be read, and no edge follows
  bool closed_ = false;
};

}  // namespace batchrpc::detail
