#pragma once

#include <chrono>

#include "batchrpc/base/executor.hpp"

namespace batchrpc {

/// From this time-out on, a deadline may be set by the coarse clock. Its error is less than a
/// hundredth of the time-out.
inline constexpr Duration kCoarseFrom = std::chrono::seconds(1);

}  // namespace batchrpc
