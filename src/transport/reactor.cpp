#include "transport/reactor.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "transport/descriptor.hpp"

namespace batchrpc::detail {
namespace {

// Names that no descriptor has: their generations begin at 1.
constexpr std::uint64_t kBell = 0;
constexpr std::uint64_t kAlarm = 1;

int checked(int result, const char* call) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), call);
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

// Nobody reads the bell or the alarm: edge-triggered, each ring and each expiry counts.
Reactor::Reactor()
    : epoll_(checked(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      bell_(checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")) {
  checked(control(epoll_, EPOLL_CTL_ADD, bell_.get(), kBell, EPOLLIN | EPOLLET), "epoll_ctl");
  checked(control(epoll_, EPOLL_CTL_ADD, alarm_.fd(), kAlarm, EPOLLIN | EPOLLET), "epoll_ctl");
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

void Reactor::set_alarm(TimePoint when) {
  const std::lock_guard lock(mutex_);
  alarm_.set(when);
  if (!std::exchange(alarm_set_, true)) use(1);
}

bool Reactor::dispatch(const epoll_event& event) {
  if (event.data.u64 == kBell) return false;
  std::unique_lock lock(mutex_);
  if (event.data.u64 == kAlarm) {
    if (std::exchange(alarm_set_, false)) use(-1);
    return true;
  }
  const auto index = static_cast<std::uint32_t>(event.data.u64);
  const auto generation = static_cast<std::uint32_t>(event.data.u64 >> 32);
  if (slots_[index].generation != generation) return false;
  const std::shared_ptr<Descriptor> descriptor = slots_[index].descriptor.lock();
  lock.unlock();
  if (descriptor) descriptor->happened(event.events);
  return false;
}

std::uint64_t Reactor::add(const std::shared_ptr<Descriptor>& descriptor, int fd,
                           std::uint32_t what) {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::uint32_t index = free_.back();
  Slot& slot = slots_[index];
  const std::uint64_t name = (std::uint64_t{++slot.generation} << 32) | index;
  checked(control(epoll_, EPOLL_CTL_ADD, fd, name, what), "epoll_ctl");
  slot.descriptor = descriptor;
  free_.pop_back();
  use(1);
  return name;
}

void Reactor::rearm(std::uint64_t name, int fd, std::uint32_t what) noexcept {
  control(epoll_, EPOLL_CTL_MOD, fd, name, what);
}

// Without EPOLL_CTL_DEL: the kernel forgets a socket when it is closed, and a forked child that
// destroys its copy would take the parent's away. Where a child still has the socket open, its
// events come, and are for nobody.
void Reactor::remove(std::uint64_t name) noexcept {
  std::weak_ptr<Descriptor> removed;
  const std::lock_guard lock(mutex_);
  const auto index = static_cast<std::uint32_t>(name);
  removed.swap(slots_[index].descriptor);
  ++slots_[index].generation;
  free_.push_back(index);
  use(-1);
}

void Reactor::on_use(UniqueFunction<void(bool)> changed) {
  const std::lock_guard lock(mutex_);
  on_use_ = std::move(changed);
}

void Reactor::use(int more) {
  const bool was = std::exchange(used_, used_ + more) > 0;
  if (was != (used_ > 0) && on_use_) on_use_(used_ > 0);
}

}  // namespace batchrpc::detail
