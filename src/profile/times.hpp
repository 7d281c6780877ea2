#pragma once

#include <algorithm>

#include "batchrpc/base/executor.hpp"

/// Records from other nodes may contain any values. Times out of range count as unknown, so that
/// sums and differences of a few times cannot overflow.
namespace batchrpc::profile {

constexpr Duration kFarthest{std::int64_t{1} << 59};  // 18 years

[[nodiscard]] constexpr bool is_known(TimePoint time) noexcept {
  const Duration since = time.time_since_epoch();
  return since != Duration::zero() && since < kFarthest && since > -kFarthest;
}

/// The time from `begin` to `end`; zero if either is unknown or `begin` is later.
[[nodiscard]] constexpr Duration between(TimePoint begin, TimePoint end) noexcept {
  return is_known(begin) && is_known(end) && begin < end ? end - begin : Duration::zero();
}

}  // namespace batchrpc::profile
