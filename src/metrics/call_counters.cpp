#include "metrics/call_counters.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "metrics/node_counters.hpp"

namespace batchrpc {
namespace {

using Errors = std::array<std::atomic<std::uint64_t>, ErrorCounts::kCodes>;

// What has ended is read before what has begun, so that the latter is never less.
void read_ends(CallMetrics& metrics, const Errors& errors, const ConcurrentHistogram& latency) {
  for (std::size_t i = 0; i < errors.size(); ++i)
    metrics.errors.counts[i] = errors[i].load(std::memory_order_acquire);
  metrics.latency = latency.snapshot();
  metrics.ok = metrics.latency.count();
}

void read_calls(CallMetrics& metrics, const std::atomic<std::uint64_t>& calls) {
  const std::uint64_t ended = metrics.ok + metrics.errors.total();
  metrics.calls = std::max(calls.load(std::memory_order_relaxed), ended);
  metrics.in_flight = metrics.calls - ended;
}

}  // namespace

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

CallMetrics FunctionCounters::snapshot() const {
  CallMetrics metrics;
  read_ends(metrics, errors_, latency_);
  read_calls(metrics, calls_);
  metrics.bytes_received = bytes_received_.load(std::memory_order_relaxed);
  metrics.bytes_sent = bytes_sent_.load(std::memory_order_relaxed);
  return metrics;
}

SessionCounts::Entry* SessionCounts::make(std::string_view name) {
  return entries_.emplace_back(std::make_unique<Entry>(name)).get();
}

SessionCounts::Entry* SessionCounts::define(std::string_view function, bool of_library) {
  const std::lock_guard lock(mutex_);
  if (of_library) {
    if (library_ == nullptr) library_ = make(kLibraryName);
    return library_;
  }
  if (entries_.size() < kMaxCountedNames) return make(function);
  if (other_ == nullptr) other_ = make(kOtherName);
  return other_;
}

void SessionCounts::name(std::string_view peer) {
  const std::lock_guard lock(mutex_);
  peer_ = peer;
}

std::string SessionCounts::peer() const {
  const std::lock_guard lock(mutex_);
  return peer_;
}

std::vector<const SessionCounts::Entry*> SessionCounts::entries() const {
  const std::lock_guard lock(mutex_);
  std::vector<const Entry*> entries;
  entries.reserve(entries_.size());
  for (const auto& entry : entries_)
    entries.push_back(entry.get());
  return entries;
}

CallMetrics SessionCounts::snapshot(const Entry& entry) {
  CallMetrics metrics;
  read_ends(metrics, entry.errors, entry.latency);
  read_calls(metrics, entry.calls);
  metrics.notifications = entry.notifications.load(std::memory_order_relaxed);
  metrics.bytes_sent = entry.bytes_sent.load(std::memory_order_relaxed);
  metrics.bytes_received = entry.bytes_received.load(std::memory_order_relaxed);
  return metrics;
}

CallsMade::CallsMade(NodeCounters* node) : node_(node) {
  if (node_ != nullptr) node_->enter(counts_);
}

CallsMade::~CallsMade() {
  if (node_ != nullptr) node_->leave(counts_);
}

}  // namespace batchrpc
