#include "transport/reactor.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/system_error_text.hpp"

namespace batchrpc::detail {
namespace {

// A name that no descriptor has: their generations begin at 1.
constexpr std::uint64_t kBell = 0;

int checked(int result, const char* call) {
  if (result < 0) throw_system_error(errno, call);
  return result;
}

int control(const OwnedFd& epoll, int operation, int fd, std::uint64_t name,
            std::uint32_t what) noexcept {
  epoll_event event{};
  event.events = what;
  event.data.u64 = name;
  return ::epoll_ctl(epoll.get(), operation, fd, &event);
}

}  // namespace

// Nobody reads the bell: edge-triggered, each ring counts.
Reactor::Reactor()
    : epoll_(checked(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      bell_(checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")) {
  checked(control(epoll_, EPOLL_CTL_ADD, bell_.get(), kBell, EPOLLIN | EPOLLET), "epoll_ctl");
}

std::size_t Reactor::wait(std::span<epoll_event> events, bool may_sleep) noexcept {
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                 may_sleep ? -1 : 0);
  return static_cast<std::size_t>(std::max(count, 0));
}

void Reactor::ring() noexcept {
  constexpr std::uint64_t kOne = 1;
  (void)!::write(bell_.get(), &kOne, sizeof kOne);
}

void Reactor::dispatch(const epoll_event& event) {
  if (event.data.u64 == kBell) return;
  const auto index = static_cast<std::uint32_t>(event.data.u64);
  const auto generation = static_cast<std::uint32_t>(event.data.u64 >> 32);
  std::shared_ptr<Watcher> watcher;
  {
    const std::lock_guard lock(mutex_);
    if (slots_[index].generation == generation) watcher = slots_[index].watcher.lock();
  }
  if (watcher) watcher->happened(event.events);
}

std::uint64_t Reactor::add(std::weak_ptr<Watcher> watcher, int fd, std::uint32_t what) {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::uint32_t index = free_.back();
  Slot& slot = slots_[index];
  const std::uint64_t name = (std::uint64_t{++slot.generation} << 32) | index;
  checked(control(epoll_, EPOLL_CTL_ADD, fd, name, what), "epoll_ctl");
  slot.watcher = std::move(watcher);
  free_.pop_back();
  return name;
}

void Reactor::rearm(std::uint64_t name, int fd, std::uint32_t what) noexcept {
  control(epoll_, EPOLL_CTL_MOD, fd, name, what);
}

// Without EPOLL_CTL_DEL: the kernel forgets a descriptor when it is closed, and a forked child that
// destroys its copy would take the parent's away. Where a child still has it open, its events come,
// and are for nobody.
void Reactor::remove(std::uint64_t name) noexcept {
  std::weak_ptr<Watcher> removed;  // destroyed after the lock
  const std::lock_guard lock(mutex_);
  const auto index = static_cast<std::uint32_t>(name);
  removed.swap(slots_[index].watcher);
  ++slots_[index].generation;
  free_.push_back(index);
}

}  // namespace batchrpc::detail
