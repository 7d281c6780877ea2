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

#include "base/thread_place.hpp"
#include "batchrpc/metrics/call_metrics.hpp"
#include "metrics/call_counts.hpp"
#include "transport/stopwatch.hpp"

namespace batchrpc {

class NodeCounters;

/// Names of functions, and of peers, that are counted each for itself.
inline constexpr std::size_t kMaxCountedNames = 4096;

/// Counts the calls of one exposed function. Lives as long as its node. Thread-safe: once there
/// have been some, each thread counts for itself, where no other thread contends.
class FunctionCounters {
 public:
  FunctionCounters(NodeCounters& node, const Stopwatch& stopwatch, std::string function)
      : name(std::move(function)), node_(node), stopwatch_(stopwatch) {}
  ~FunctionCounters();
  FunctionCounters(const FunctionCounters&) = delete;
  FunctionCounters& operator=(const FunctionCounters&) = delete;

  void began(std::uint64_t bytes) noexcept {
    count([&](CallCounts& counts, auto add) {
      add(counts.calls, 1);
      add(counts.bytes_received, bytes);
    });
  }
  /// One has ended: `latency` in ns. Each that began once, by this or by failed().
  void answered(std::uint64_t latency, std::uint64_t bytes) noexcept {
    count([&](CallCounts& counts, auto add) {
      add(counts.bytes_sent, bytes);
      add(counts.latency, latency);
    });
  }
  /// `bytes`: of the error that was sent, if one was.
  void failed(ErrorCode code, std::uint64_t bytes = 0) noexcept {
    count([&](CallCounts& counts, auto add) {
      add(counts.bytes_sent, bytes);
      add(counts.errors[ErrorCounts::index_of(code)], 1);
    });
  }

  [[nodiscard]] NodeCounters& node() const noexcept { return node_; }
  [[nodiscard]] const Stopwatch& stopwatch() const noexcept { return stopwatch_; }
  [[nodiscard]] CallMetrics snapshot() const;

  const std::string name;

 private:
  // Calls of a function that has no counts by thread yet: they take 3 KB a thread.
  static constexpr std::uint64_t kOfFew = 1024;

  template <class Count>
  void count(const Count& count) noexcept {
    const std::size_t place = detail::thread_place();
    CallCounts* own = nullptr;
    if (place < own_.size()) {
      own = own_[place].load(std::memory_order_relaxed);  // the thread's own, or of one before it
      if (own == nullptr) [[unlikely]]
        own = make_own(place);
    }
    own != nullptr ? count(*own, AddAlone()) : count(shared_, AddShared());
  }
  [[nodiscard]] CallCounts* make_own(std::size_t place) noexcept;  // or null

  NodeCounters& node_;
  const Stopwatch stopwatch_;
  CallCounts shared_;
  std::array<std::atomic<CallCounts*>, detail::kThreadPlaces> own_{};
};

/// What is counted of the calls that a node makes over one session: see CallsMade. Others look at
/// it for as long as they like, also when the session is gone, and nobody who counts waits for
/// them. Thread-safe.
class SessionCounts {
 public:
  struct Entry : CallCounts {
    explicit Entry(std::string_view function) : name(function) {}
    const std::string name;
  };

  /// The entry of that function, or of those that have none of their own. It stays.
  [[nodiscard]] Entry* define(std::string_view function, bool of_library);
  void name(std::string_view peer);
  [[nodiscard]] std::string peer() const;

  /// Calls `visit(function, metrics)` for each, without a lock.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const Entry* entry : entries()) {
      const CallCounts* const counts = entry;
      visit(entry->name, sum_of({&counts, 1}));
    }
  }

 private:
  [[nodiscard]] std::vector<const Entry*> entries() const;
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
    add(entry.latency, latency);
  }
  void failed(std::uint32_t function, ErrorCode code) noexcept {
    add(by_number_[function]->errors[ErrorCounts::index_of(code)], 1);
  }
  /// @}

  [[nodiscard]] const std::shared_ptr<SessionCounts>& counts() const noexcept { return counts_; }

 private:
  using Entry = SessionCounts::Entry;

  static constexpr AddAlone add{};

  NodeCounters* const node_;
  const std::shared_ptr<SessionCounts> counts_ = std::make_shared<SessionCounts>();
  std::vector<Entry*> by_number_;  // for who has the session's lock
};

}  // namespace batchrpc
