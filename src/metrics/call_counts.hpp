#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "batchrpc/metrics/call_metrics.hpp"
#include "metrics/concurrent_histogram.hpp"

namespace batchrpc {

/// What is counted of calls, by one thread at a time or by several. Others look meanwhile.
struct CallCounts {
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> notifications{0};
  std::atomic<std::uint64_t> bytes_sent{0};
  std::atomic<std::uint64_t> bytes_received{0};
  std::array<std::atomic<std::uint64_t>, ErrorCounts::kCodes> errors{};
  ConcurrentHistogram latency;  ///< of those that ended with a result, in ns: their number, too
};

/// Adds to counts that one thread at a time adds to: without a locked instruction.
struct AddAlone {
  void operator()(std::atomic<std::uint64_t>& counter, std::uint64_t more) const noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_release);
  }
  void operator()(ConcurrentHistogram& histogram, std::uint64_t value) const noexcept {
    histogram.add_alone(value);
  }
};

/// Adds to counts that any thread adds to.
struct AddShared {
  void operator()(std::atomic<std::uint64_t>& counter, std::uint64_t more) const noexcept {
    counter.fetch_add(more, std::memory_order_release);
  }
  void operator()(ConcurrentHistogram& histogram, std::uint64_t value) const noexcept {
    histogram.add(value);
  }
};

/// The sum of all that counts calls of one function: what has ended is read before what has begun,
/// so that the latter is never less.
[[nodiscard]] CallMetrics sum_of(std::span<const CallCounts* const> all);

}  // namespace batchrpc
