#pragma once

#include <algorithm>

#include "batchrpc/base/executor.hpp"

/// Records come from other nodes, which may tell anything: what is out of range counts as not
/// known, so that no sum or difference of a few times overflows.
namespace batchrpc::profile {

constexpr Duration kFarthest{std::int64_t{1} << 59};  // 18 years

[[nodiscard]] constexpr bool is_known(TimePoint time) noexcept {
  const Duration since = time.time_since_epoch();
  return since != Duration::zero() && since < kFarthest && since > -kFarthest;
}

/// From one to the other; zero if either is not known, or the first is later.
[[nodiscard]] constexpr Duration between(TimePoint begin, TimePoint end) noexcept {
  return is_known(begin) && is_known(end) && begin < end ? end - begin : Duration::zero();
}

}  // namespace batchrpc::profile
