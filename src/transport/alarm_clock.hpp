#pragma once

#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/system_error_text.hpp"
#include "batchrpc/base/executor.hpp"
#include "transport/owned_fd.hpp"

namespace batchrpc::detail {

/// A timerfd on the steady clock, with one alarm at a time: the last that was set. Thread-safe.
class AlarmClock {
 public:
  /// Throws Overloaded where there are no descriptors left.
  AlarmClock() : timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)) {
    if (timer_.get() < 0) throw_system_error(errno, "timerfd_create");
  }

  /// Readable once the alarm has gone off.
  [[nodiscard]] int fd() const noexcept { return timer_.get(); }

  /// At once for a time that has passed.
  void set(TimePoint when) const noexcept {
    const auto ns =
        std::max<std::chrono::nanoseconds>(when.time_since_epoch(), std::chrono::nanoseconds(1));
    itimerspec setting{};
    setting.it_value.tv_sec = static_cast<time_t>(ns.count() / 1'000'000'000);
    setting.it_value.tv_nsec = static_cast<long>(ns.count() % 1'000'000'000);
    ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &setting, nullptr);
  }

 private:
  const OwnedFd timer_;
};

}  // namespace batchrpc::detail
