#pragma once

#include "batchrpc/base/executor.hpp"

namespace batchrpc {

/// `when` plus `time`, but at most the clock's end, so that Duration::max() means "for ever".
[[nodiscard]] constexpr TimePoint after(TimePoint when, Duration time) noexcept {
  return time > TimePoint::max() - when ? TimePoint::max() : when + time;
}

/// The sum of both, but at most Duration::max().
[[nodiscard]] constexpr Duration sum(Duration a, Duration b) noexcept {
  return a > Duration::max() - b ? Duration::max() : a + b;
}

}  // namespace batchrpc
