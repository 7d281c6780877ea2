#include "transport/tick_counter.hpp"

#include <fstream>
#include <string>

namespace batchrpc::detail {

bool TickCounter::is_good() {
#if defined(__x86_64__)
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string source;
  return file >> source && source == "tsc";
#else
  return false;
#endif
}

TickCounter::TickCounter() {
  const TickRate::Reading first = read();
  take(first);
  constexpr std::uint64_t kFirstNanoseconds = 50'000;  // the two readings are off by some 50
  TickRate::Reading later = read();
  while (later.nanoseconds - first.nanoseconds < kFirstNanoseconds)
    later = read();
  take(later);
}

// Of some tries the one that took the shortest, during which least can have come between.
TickRate::Reading TickCounter::read() const noexcept {
  constexpr int kTries = 4;
  TickRate::Reading best;
  std::uint64_t shortest = ~std::uint64_t{0};
  for (int i = 0; i < kTries; ++i) {
    const std::uint64_t before = ticks();
    const std::uint64_t nanoseconds = steady();
    const std::uint64_t took = ticks() - before;
    if (took >= shortest) continue;
    shortest = took;
    best = {.ticks = before + took / 2, .nanoseconds = nanoseconds};
  }
  return best;
}

void TickCounter::take(const TickRate::Reading& reading) noexcept {
  due_.store(measured_.take(reading), std::memory_order_relaxed);
  if (measured_.rate() == 0) return;
  rate_.store(static_cast<std::uint64_t>(measured_.rate() *
                                         static_cast<double>(std::uint64_t{1} << kShift)),
              std::memory_order_relaxed);
}

void TickCounter::measure_now_and_then() noexcept {
  if (ticks() < due_.load(std::memory_order_relaxed)) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock && ticks() >= due_.load(std::memory_order_relaxed)) take(read());
}

}  // namespace batchrpc::detail
