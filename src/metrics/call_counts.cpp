#include "metrics/call_counts.hpp"

#include <algorithm>
#include <numeric>

namespace batchrpc {

std::uint64_t ErrorCounts::total() const noexcept {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

void ErrorCounts::add(const ErrorCounts& other) noexcept {
  for (std::size_t i = 0; i < counts.size(); ++i)
    counts[i] += other.counts[i];
}

void CallMetrics::add(const CallMetrics& other) {
  calls += other.calls;
  ok += other.ok;
  errors.add(other.errors);
  in_flight += other.in_flight;
  notifications += other.notifications;
  bytes_sent += other.bytes_sent;
  bytes_received += other.bytes_received;
  latency.add(other.latency);
}

CallMetrics sum_of(std::span<const CallCounts* const> all) {
  CallMetrics sum;
  for (const CallCounts* const counts : all) {
    for (std::size_t i = 0; i < counts->errors.size(); ++i)
      sum.errors.counts[i] += counts->errors[i].load(std::memory_order_acquire);
    sum.latency.add(counts->latency.snapshot());
    sum.notifications += counts->notifications.load(std::memory_order_relaxed);
    sum.bytes_sent += counts->bytes_sent.load(std::memory_order_relaxed);
    sum.bytes_received += counts->bytes_received.load(std::memory_order_relaxed);
  }
  for (const CallCounts* const counts : all)
    sum.calls += counts->calls.load(std::memory_order_relaxed);
  sum.ok = sum.latency.count();
  const std::uint64_t ended = sum.ok + sum.errors.total();
  sum.calls = std::max(sum.calls, ended);
  sum.in_flight = sum.calls - ended;
  return sum;
}

}  // namespace batchrpc
