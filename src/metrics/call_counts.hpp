#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "batchrpc/metrics/call_metrics.hpp"
#include "metrics/concurrent_histogram.hpp"

namespace batchrpc {

/// Counts of calls. One thread at a time or several threads add to them; other threads may read at
/// the same time.
struct CallCounts {
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> notifications{0};
  std::atomic<std::uint64_t> bytes_sent{0};
  std::atomic<std::uint64_t> bytes_received{0};
  std::array<std::atomic<std::uint64_t>, ErrorCounts::kCodes> errors{};
  ConcurrentHistogram latency;  ///< ns of the calls that ended with a result; also counts these
};

/// Adds to counts that only one thread at a time changes. Needs no locked instruction.
struct AddAlone {
  void operator()(std::atomic<std::uint64_t>& counter, std::uint64_t more) const noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_release);
  }
  void operator()(ConcurrentHistogram& histogram, std::uint64_t value) const noexcept {
    histogram.add_alone(value);
  }
};

/// Adds to counts that any thread may change.
struct AddShared {
  void operator()(std::atomic<std::uint64_t>& counter, std::uint64_t more) const noexcept {
    counter.fetch_add(more, std::memory_order_release);
  }
  void operator()(ConcurrentHistogram& histogram, std::uint64_t value) const noexcept {
    histogram.add(value);
  }
};

/// The sum of all counts of one function. It reads ended calls before begun calls, so that the
/// number of begun calls is never the smaller one.
[[nodiscard]] CallMetrics sum_of(std::span<const CallCounts* const> all);

}  // namespace batchrpc
