#include "base/thread_place.hpp"

#include <atomic>
#include <bit>
#include <cstdint>

namespace batchrpc::detail {
namespace {

constinit std::atomic<std::uint32_t> taken{0};
static_assert(kThreadPlaces == 32);

// Uses no lock, because a forked child could find it held.
std::size_t take_place() noexcept {
  std::uint32_t before = taken.load(std::memory_order_relaxed);
  while (true) {
    const auto free = static_cast<std::size_t>(std::countr_one(before));
    if (free == kThreadPlaces) return free;
    if (taken.compare_exchange_weak(before, before | std::uint32_t{1} << free,
                                    std::memory_order_acquire, std::memory_order_relaxed))
      return free;
  }
}

void give_place_back(std::size_t place) noexcept {
  if (place < kThreadPlaces)
    taken.fetch_and(~(std::uint32_t{1} << place), std::memory_order_release);
}

}  // namespace

std::size_t thread_place() noexcept {
  constexpr std::size_t kUnknown = kThreadPlaces + 1;
  static constinit thread_local std::size_t own = kUnknown;
  if (own == kUnknown) [[unlikely]] {
    struct AtThreadEnd {
      ~AtThreadEnd() {
        const std::size_t place = own;
        own = kThreadPlaces;
        give_place_back(place);
      }
    };
    thread_local AtThreadEnd at_thread_end;
    (void)&at_thread_end;
    own = take_place();
  }
  return own;
}

}  // namespace batchrpc::detail
