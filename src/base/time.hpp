#pragma once

#include "batchrpc/base/executor.hpp"

namespace batchrpc {

/// `when` and then `time`; the clock's end at the latest, so that Duration::max() means "for ever".
[[nodiscard]] constexpr TimePoint after(TimePoint when, Duration time) noexcept {
  return time > TimePoint::max() - when ? TimePoint::max() : when + time;
}

/// Both together; Duration::max() at the most.
[[nodiscard]] constexpr Duration sum(Duration a, Duration b) noexcept {
  return a > Duration::max() - b ? Duration::max() : a + b;
}

}  // namespace batchrpc
