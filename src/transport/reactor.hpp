#pragma once

#include <sys/epoll.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "batchrpc/base/executor.hpp"
#include "batchrpc/base/function.hpp"
#include "transport/alarm_clock.hpp"
#include "transport/owned_fd.hpp"

namespace batchrpc::detail {

class Descriptor;

/// What a loop waits in for its sockets: an epoll set, with an alarm clock and a bell in it. Each
/// socket is registered once, edge-triggered, and told which edges it missed (Descriptor), so that
/// a message costs no call of epoll_ctl. One thread at a time waits; the rest is thread-safe.
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

  /// One alarm at a time: the last that was set. On the steady clock.
  void set_alarm(TimePoint when);

  /// Hands an event on to the descriptor that it is for, if that is still there. Whether it was the
  /// alarm.
  bool dispatch(const epoll_event& event);

  /// Registers a socket for `what`, an epoll mask, and gives its name here. Whatever is the case
  /// already counts as an edge. Throws std::system_error.
  std::uint64_t add(const std::shared_ptr<Descriptor>& descriptor, int fd, std::uint32_t what);
  /// Changes the mask. Whatever is the case already counts as an edge once more.
  void rearm(std::uint64_t name, int fd, std::uint32_t what) noexcept;
  /// Before the socket is closed.
  void remove(std::uint64_t name) noexcept;

  /// Has `changed` called, under a lock of this, when the first descriptor or alarm comes and when
  /// the last has gone: with whether there are some. Set before there are; null: no more.
  void on_use(UniqueFunction<void(bool)> changed);

 private:
  struct Slot {
    std::weak_ptr<Descriptor> descriptor;
    std::uint32_t generation = 0;
  };
  void use(int more);  // with mutex_ held

  const OwnedFd epoll_;
  const OwnedFd bell_;  // an eventfd
  const AlarmClock alarm_;

  std::mutex mutex_;  // guards what follows
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  UniqueFunction<void(bool)> on_use_;
  int used_ = 0;  // descriptors, and the alarm if it is set
  bool alarm_set_ = false;
};

}  // namespace batchrpc::detail
