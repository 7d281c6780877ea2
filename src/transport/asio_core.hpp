#pragma once

#include <time.h>

#include <asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "batchrpc/transport/loop.hpp"
#include "transport/asio_timers.hpp"
#include "transport/guest.hpp"

namespace batchrpc::detail {

/// What an AsioLoop consists of, kept alive by the loop and by what was made on it.
class AsioCore : public std::enable_shared_from_this<AsioCore> {
 public:
  AsioCore() = default;
  virtual ~AsioCore() = default;
  AsioCore(const AsioCore&) = delete;
  AsioCore& operator=(const AsioCore&) = delete;

  [[nodiscard]] virtual asio::io_context& io() noexcept = 0;
  [[nodiscard]] virtual AsioTimers& timers() noexcept = 0;
  /// As which all handlers of the context run that are the loop's. Null: one thread drives anyway.
  [[nodiscard]] virtual std::shared_ptr<Guest> guest() const noexcept { return nullptr; }

  virtual void stop() = 0;
  virtual void wait(Waiter& waiter, const std::optional<TimePoint>& deadline) = 0;
  virtual void post(Task task) = 0;
  virtual void defer(Task task) { post(std::move(task)); }
  virtual TimerId schedule(TimePoint when, Task task) = 0;
  [[nodiscard]] virtual bool is_driving() const noexcept = 0;
  virtual bool poll() = 0;

  /// Loops have no other clock than this.
  [[nodiscard]] static TimePoint now() noexcept { return std::chrono::steady_clock::now(); }
  /// The same clock as of the kernel's last tick.
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
};

/// Returns or sleeps on, as `deadline` says.
inline void sleep_until_ready(Waiter& waiter, const std::optional<TimePoint>& deadline) {
  while (!waiter.sleep(deadline) && !(deadline && AsioCore::now() >= *deadline)) {
  }
}

}  // namespace batchrpc::detail
