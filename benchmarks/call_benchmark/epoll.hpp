#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace call_benchmark {

/// epoll, level-triggered, with a number for each descriptor.
class Epoll {
 public:
  Epoll();
  ~Epoll();
  Epoll(const Epoll&) = delete;
  Epoll& operator=(const Epoll&) = delete;

  void add(int descriptor, std::uint64_t number);
  /// To be called before it is closed here, as another may hold it open.
  void remove(int descriptor);
  /// What is readable; `sleep` false: returns at once, with what is or nothing. Valid until called
  /// again.
  std::span<const epoll_event> wait(bool sleep);

 private:
  int descriptor_;
  std::array<epoll_event, 64> events_{};
};

}  // namespace call_benchmark
