#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>

#include "transport/tick_rate.hpp"

namespace batchrpc::detail {

/// The processor's time stamp counter. It is used to take the times of every message if the kernel
/// itself uses it as its clock (docs/decisions/0027). Its rate is measured against the steady
/// clock: first at construction, which takes 50 us, and again as more time has passed. Thread-safe.
class TickCounter {
 public:
  TickCounter();

  /// Returns whether there is a counter that the kernel considers the same on all processors, with
  /// a constant rate.
  [[nodiscard]] static bool is_good();

  [[nodiscard]] std::uint64_t ticks() const noexcept {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();  // __rdtsc() without <x86intrin.h>, which takes long to compile
#else
    return steady();
#endif
  }
  /// Returns how long this many ticks are; zero if the number is negative.
  [[nodiscard]] std::uint64_t nanoseconds(std::uint64_t ticks) const noexcept {
    if (static_cast<std::int64_t>(ticks) <= 0) return 0;
    __extension__ using Wide = unsigned __int128;
    const Wide product = Wide{ticks} * rate_.load(std::memory_order_relaxed);
    return static_cast<std::uint64_t>(product >> kShift);
  }

  /// Call it from time to time, on any thread. It measures the rate again, over all time since
  /// construction or since the system was last suspended, whenever that time has doubled.
  void measure_now_and_then() noexcept;

 private:
  static constexpr unsigned kShift = 32;
  [[nodiscard]] static std::uint64_t steady() noexcept {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }
  [[nodiscard]] TickRate::Reading read() const noexcept;
  void take(const TickRate::Reading& reading) noexcept;

  std::mutex mutex_;
  TickRate measured_;                  // guarded by it
  std::atomic<std::uint64_t> due_{0};  // the tick at which the next measurement is due
  std::atomic<std::uint64_t> rate_{std::uint64_t{1} << kShift};  // ns a tick, times 2^32
};

}  // namespace batchrpc::detail
