#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>

#include "transport/tick_rate.hpp"

namespace batchrpc::detail {

/// The processor's time stamp counter, by which times are taken at every message where the kernel
/// itself keeps time by it (docs/decisions/0027). How fast it runs is measured against the steady
/// clock, first when this is made, which takes 50 us, and anew as more time has passed.
/// Thread-safe.
class TickCounter {
 public:
  TickCounter();

  /// Whether there is one that the kernel takes to be the same on all processors, and of one speed.
  [[nodiscard]] static bool is_good();

  [[nodiscard]] std::uint64_t ticks() const noexcept {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();  // __rdtsc() without <x86intrin.h>, which takes long to compile
#else
    return steady();
#endif
  }
  /// How long so many ticks are; zero for a difference that is negative.
  [[nodiscard]] std::uint64_t nanoseconds(std::uint64_t ticks) const noexcept {
    if (static_cast<std::int64_t>(ticks) <= 0) return 0;
    __extension__ using Wide = unsigned __int128;
    const Wide product = Wide{ticks} * rate_.load(std::memory_order_relaxed);
    return static_cast<std::uint64_t>(product >> kShift);
  }

  /// To be called now and then, by anybody: measures the rate anew, over all time since this was
  /// made or the system was last suspended, whenever that has doubled.
  void measure_now_and_then() noexcept;

 private:
  static constexpr unsigned kShift = 32;
  [[nodiscard]] static std::uint64_t steady() noexcept {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }
  [[nodiscard]] TickRate::Reading read() const noexcept;
  void take(const TickRate::Reading& reading) noexcept;

  std::mutex mutex_;
  TickRate measured_;                                            // guarded by it
  std::atomic<std::uint64_t> due_{0};                            // to be measured, by ticks
  std::atomic<std::uint64_t> rate_{std::uint64_t{1} << kShift};  // ns a tick, times 2^32
};

}  // namespace batchrpc::detail
