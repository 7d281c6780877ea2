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

/// Receives the events of a descriptor.
class Watcher {
 public:
  /// A mask of epoll.
  virtual void happened(std::uint32_t events) = 0;

 protected:
  ~Watcher() = default;
};

/// Loops wait in it for their sockets and alarms: an epoll set with a bell. Each descriptor is
/// registered once, edge-triggered, and its watcher keeps track of missed edges, so a message costs
/// no call of epoll_ctl. One thread at a time waits; everything else is thread-safe.
class Reactor {
 public:
  /// Throws std::system_error if there are no descriptors left.
  Reactor();
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;

  /// Returns a descriptor that is readable while there are events, for an outer reactor.
  [[nodiscard]] int fd() const noexcept { return epoll_.get(); }

  /// Gets events, up to the size of `events`, and returns their number. With `may_sleep`, waits
  /// until there are some, or a signal arrives.
  std::size_t wait(std::span<epoll_event> events, bool may_sleep) noexcept;

  /// Makes a thread in wait() leave it, or the next call of wait() return at once.
  void ring() noexcept;

  /// Passes an event to its watcher, if that still exists.
  void dispatch(const epoll_event& event);

  /// Registers a descriptor for `what`, an epoll mask, and returns its name here. A state that
  /// already holds counts as an edge. Throws std::system_error.
  std::uint64_t add(std::weak_ptr<Watcher> watcher, int fd, std::uint32_t what);
  /// Changes the mask. A state that already holds counts as an edge again.
  void rearm(std::uint64_t name, int fd, std::uint32_t what) noexcept;
  /// Must be called before the descriptor is closed.
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
