#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace call_benchmark {

/// A level-triggered epoll with a number for each descriptor.
class Epoll {
 public:
  Epoll();
  ~Epoll();
  Epoll(const Epoll&) = delete;
  Epoll& operator=(const Epoll&) = delete;

  void add(int descriptor, std::uint64_t number);
  /// Call it before the descriptor is closed here, because another process may keep it open.
  void remove(int descriptor);
  /// Returns the readable descriptors. With `sleep` false it returns at once, perhaps with none.
  /// Valid until the next call.
  std::span<const epoll_event> wait(bool sleep);

 private:
  int descriptor_;
  std::array<epoll_event, 64> events_{};
};

}  // namespace call_benchmark
