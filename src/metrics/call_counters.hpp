#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "batchrpc/metrics/call_metrics.hpp"
#include "metrics/concurrent_histogram.hpp"
#include "transport/stopwatch.hpp"

namespace batchrpc {

class NodeCounters;

/// Names of functions, and of peers, that are counted each for itself.
inline constexpr std::size_t kMaxCountedNames = 4096;

/// Counts the calls of one exposed function. Lives as long as its node. Thread-safe.
class FunctionCounters {
 public:
  FunctionCounters(NodeCounters& node, const Stopwatch& stopwatch, std::string function)
      : name(std::move(function)), node_(node), stopwatch_(stopwatch) {}

  void began(std::uint64_t bytes) noexcept {
    calls_.fetch_add(1, std::memory_order_relaxed);
    bytes_received_.fetch_add(bytes, std::memory_order_relaxed);
  }
  /// One has ended: `latency` in ns. Each that began once, by this or by failed().
  void answered(std::uint64_t latency, std::uint64_t bytes) noexcept {
    bytes_sent_.fetch_add(bytes, std::memory_order_relaxed);
    latency_.add(latency);
  }
  /// `bytes`: of the error that was sent, if one was.
  void failed(ErrorCode code, std::uint64_t bytes = 0) noexcept {
    bytes_sent_.fetch_add(bytes, std::memory_order_relaxed);
    errors_[ErrorCounts::index_of(code)].fetch_add(1, std::memory_order_release);
  }

  [[nodiscard]] NodeCounters& node() const noexcept { return node_; }
  [[nodiscard]] const Stopwatch& stopwatch() const noexcept { return stopwatch_; }
  [[nodiscard]] CallMetrics snapshot() const;

  const std::string name;

 private:
  NodeCounters& node_;
  const Stopwatch stopwatch_;
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<std::uint64_t> bytes_received_{0};
  std::atomic<std::uint64_t> bytes_sent_{0};
  std::array<std::atomic<std::uint64_t>, ErrorCounts::kCodes> errors_{};
  ConcurrentHistogram latency_;
};

/// What is counted of the calls that a node makes over one session: see CallsMade. Others look at
/// it for as long as they like, also when the session is gone, and nobody who counts waits for
/// them. Thread-safe.
class SessionCounts {
 public:
  struct Entry {
    explicit Entry(std::string_view function) : name(function) {}
    const std::string name;
    std::atomic<std::uint64_t> calls{0};
    std::atomic<std::uint64_t> notifications{0};
    std::atomic<std::uint64_t> bytes_sent{0};
    std::atomic<std::uint64_t> bytes_received{0};
    std::array<std::atomic<std::uint64_t>, ErrorCounts::kCodes> errors{};
    ConcurrentHistogram latency;
  };

  /// The entry of that function, or of those that have none of their own. It stays.
  [[nodiscard]] Entry* define(std::string_view function, bool of_library);
  void name(std::string_view peer);
  [[nodiscard]] std::string peer() const;

  /// Calls `visit(function, metrics)` for each, without a lock.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const Entry* entry : entries())
      visit(entry->name, snapshot(*entry));
  }

 private:
  [[nodiscard]] std::vector<const Entry*> entries() const;
  [[nodiscard]] static CallMetrics snapshot(const Entry& entry);
  [[nodiscard]] Entry* make(std::string_view name);

  mutable std::mutex mutex_;  // guards what follows, but not what is in the entries
  std::string peer_;
  std::vector<std::unique_ptr<Entry>> entries_;
  Entry* library_ = nullptr;
  Entry* other_ = nullptr;
};

/// Counts the calls that a node makes over one session. What counts is called by who holds the
/// session's lock, so that nothing needs an atomic addition; others look meanwhile. What was
/// counted becomes the node's at the end.
class CallsMade {
 public:
  /// `node`: null where nobody asks.
  explicit CallsMade(NodeCounters* node);
  ~CallsMade();
  CallsMade(const CallsMade&) = delete;
  CallsMade& operator=(const CallsMade&) = delete;

  /// The functions get numbers in order, from 0 on; those of the library itself count together.
  void define(std::string_view function, bool of_library) {
    by_number_.push_back(counts_->define(function, of_library));
  }
  void called(std::uint32_t function, std::uint64_t bytes) noexcept {
    Entry& entry = *by_number_[function];
    add(entry.calls, 1);
    add(entry.bytes_sent, bytes);
  }
  void notified(std::uint32_t function, std::uint64_t bytes) noexcept {
    Entry& entry = *by_number_[function];
    add(entry.notifications, 1);
    add(entry.bytes_sent, bytes);
  }
  /// The error has come, of so many bytes, in which one ends: failed() follows.
  void received(std::uint32_t function, std::uint64_t bytes) noexcept {
    add(by_number_[function]->bytes_received, bytes);
  }
  /// A call has ended, with a result: `latency` in ns. Or in an error. Each once.
  /// @{
  void answered(std::uint32_t function, std::uint64_t latency, std::uint64_t bytes) noexcept {
    Entry& entry = *by_number_[function];
    add(entry.bytes_received, bytes);
    entry.latency.add_alone(latency);
  }
  void failed(std::uint32_t function, ErrorCode code) noexcept {
    add(by_number_[function]->errors[ErrorCounts::index_of(code)], 1);
  }
  /// @}

  [[nodiscard]] const std::shared_ptr<SessionCounts>& counts() const noexcept { return counts_; }

 private:
  using Entry = SessionCounts::Entry;

  static void add(std::atomic<std::uint64_t>& counter, std::uint64_t more) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_release);
  }

  NodeCounters* const node_;
  const std::shared_ptr<SessionCounts> counts_ = std::make_shared<SessionCounts>();
  std::vector<Entry*> by_number_;  // for who has the session's lock
};

}  // namespace batchrpc
