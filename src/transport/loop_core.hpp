#pragma once

#include <time.h>

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "batchrpc/transport/loop.hpp"
#include "transport/site.hpp"
#include "transport/timers.hpp"

namespace batchrpc::detail {

/// The parts of a SocketLoop. It is kept alive by the loop and by everything made on it.
class LoopCore : public std::enable_shared_from_this<LoopCore> {
 public:
  explicit LoopCore(std::shared_ptr<Site> site)
      : site_(std::move(site)), timers_(Timers::make(site_)) {}
  virtual ~LoopCore() = default;
  LoopCore(const LoopCore&) = delete;
  LoopCore& operator=(const LoopCore&) = delete;

  /// The site of the loop's sockets.
  [[nodiscard]] const std::shared_ptr<Site>& site() const noexcept { return site_; }
  [[nodiscard]] Timers& timers() noexcept { return *timers_; }

  virtual void stop() = 0;
  virtual void wait(Waiter& waiter, const std::optional<TimePoint>& deadline) = 0;
  virtual void post(Task task) = 0;
  virtual void defer(Task task) { post(std::move(task)); }
  virtual TimerId schedule(TimePoint when, Task task) = 0;
  [[nodiscard]] virtual bool is_driving() const noexcept = 0;
  virtual bool poll() = 0;

  /// The only clock of these loops.
  [[nodiscard]] static TimePoint now() noexcept { return std::chrono::steady_clock::now(); }
  /// The same clock at the kernel's last tick.
  [[nodiscard]] static TimePoint coarse_now() noexcept {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    return TimePoint(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
  }
  /// How long a tick is.
  [[nodiscard]] static Duration coarse_lag() noexcept {
    static const Duration lag = [] {
      timespec tick{};
      ::clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
      return std::chrono::seconds(tick.tv_sec) + std::chrono::nanoseconds(tick.tv_nsec);
    }();
    return lag;
  }

 private:
  const std::shared_ptr<Site> site_;
  const std::shared_ptr<Timers> timers_;
};

/// Sleeps until `waiter` is ready, or until `deadline`.
inline void sleep_until_ready(Waiter& waiter, const std::optional<TimePoint>& deadline) {
  while (!waiter.sleep(deadline) && !(deadline && LoopCore::now() >= *deadline)) {
  }
}

}  // namespace batchrpc::detail
