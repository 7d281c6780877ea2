#include "call_benchmark/epoll.hpp"

#include <unistd.h>

#include <cerrno>

#include "common/throw_errno.hpp"

namespace call_benchmark {

using batchrpc_benchmarks::throw_errno;

Epoll::Epoll() : descriptor_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (descriptor_ < 0) throw_errno("epoll_create1");
}

Epoll::~Epoll() { ::close(descriptor_); }

void Epoll::add(int descriptor, std::uint64_t number) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = number;
  if (::epoll_ctl(descriptor_, EPOLL_CTL_ADD, descriptor, &event) != 0) throw_errno("epoll_ctl");
}

void Epoll::remove(int descriptor) {
  if (::epoll_ctl(descriptor_, EPOLL_CTL_DEL, descriptor, nullptr) != 0) throw_errno("epoll_ctl");
}

std::span<const epoll_event> Epoll::wait(bool sleep) {
  const int count =
      ::epoll_wait(descriptor_, events_.data(), static_cast<int>(events_.size()), sleep ? -1 : 0);
  if (count < 0 && errno != EINTR) throw_errno("epoll_wait");
  return std::span(events_).first(static_cast<std::size_t>(count > 0 ? count : 0));
}

}  // namespace call_benchmark
