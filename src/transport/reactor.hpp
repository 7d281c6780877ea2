#pragma once

#include <sys/epoll.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "transport/owned_fd.hpp"

namespace batchrpc::detail {

/// Who is told of what happens to a descriptor.
class Watcher {
 public:
  /// A mask of epoll.
  virtual void happened(std::uint32_t events) = 0;

 protected:
  ~Watcher() = default;
};

/// What loops wait in for their sockets and alarms: an epoll set with a bell in it. Each descriptor
/// is registered once, edge-triggered, and whoever watches it knows which edges were missed, so
/// that a message costs no call of epoll_ctl. One thread at a time waits; the rest is thread-safe.
class Reactor {
 public:
  /// Throws std::system_error where there are no descriptors left.
  Reactor();
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;

  /// Readable while there are events, for who has a reactor already.
  [[nodiscard]] int fd() const noexcept { return epoll_.get(); }

  /// Events up to the size of `events`; how many. `may_sleep`: until there are some, or a signal
  /// comes.
  std::size_t wait(std::span<epoll_event> events, bool may_sleep) noexcept;

  /// Makes a thread in wait() leave it; one that is not there yet, later.
  void ring() noexcept;

  /// Tells the one that watches what an event is of, if that is still there.
  void dispatch(const epoll_event& event);

  /// Registers a descriptor for `what`, an epoll mask, and gives its name here. Whatever is the
  /// case already counts as an edge. Throws std::system_error.
  std::uint64_t add(std::weak_ptr<Watcher> watcher, int fd, std::uint32_t what);
  /// Changes the mask. Whatever is the case already counts as an edge once more.
  void rearm(std::uint64_t name, int fd, std::uint32_t what) noexcept;
  /// Before the descriptor is closed.
  void remove(std::uint64_t name) noexcept;

 private:
  struct Slot {
    std::weak_ptr<Watcher> watcher;
    std::uint32_t generation = 0;
  };

  const OwnedFd epoll_;
  const OwnedFd bell_;  // an eventfd

  std::mutex mutex_;  // guards what follows
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
};

}  // namespace batchrpc::detail
