#include "batch/adaptive_wait.hpp"

namespace batchrpc::detail {

AdaptiveWait::AdaptiveWait(LatencyTarget target, std::size_t max_size)
    : target_(target), max_size_(max_size), choice_{.size = max_size} {}

void AdaptiveWait::arrived(TimePoint /*now*/, std::size_t /*rows*/) {}

void AdaptiveWait::ended(TimePoint /*started*/, TimePoint /*now*/, std::size_t /*rows*/,
                         std::span<const Duration> /*latencies*/) {}

}  // namespace batchrpc::detail
