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

/// The number of names of functions, and of peers, that are counted separately.
inline constexpr std::size_t kMaxCountedNames = 4096;

/// Counts the calls of one exposed function. Lives as long as its node. Thread-safe. After a
/// certain number of calls each thread counts on its own, so that threads do not contend.
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
  /// A call ended with a result; `latency` in ns. Call this or failed() once for each call that
  /// began.
  void answered(std::uint64_t latency, std::uint64_t bytes) noexcept {
    count([&](CallCounts& counts, auto add) {
      add(counts.bytes_sent, bytes);
      add(counts.latency, latency);
    });
  }
  /// A call failed. `bytes` is the size of the error that was sent, if any.
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
  // Up to this number of calls a function has no counts per thread, which take 3 KB each.
  static constexpr std::uint64_t kOfFew = 1024;

  template <class Count>
  void count(const Count& count) noexcept {
    const std::size_t place = detail::thread_place();
    CallCounts* own = nullptr;
    if (place < own_.size()) {
      own = own_[place].load(std::memory_order_relaxed);  // this thread's own, or left by an
                                                          // earlier thread at this place
      if (own == nullptr) [[unlikely]]
        own = make_own(place);
    }
    own != nullptr ? count(*own, AddAlone()) : count(shared_, AddShared());
  }
  [[nodiscard]] CallCounts* make_own(std::size_t place) noexcept;  // null if there is no memory

  NodeCounters& node_;
  const Stopwatch stopwatch_;
  CallCounts shared_;
  std::array<std::atomic<CallCounts*>, detail::kThreadPlaces> own_{};
};

/// The counts of the calls that a node makes over one session; see CallsMade. Readers may use it
/// for as long as they like, even after the session is gone, and never block the counting thread.
/// Thread-safe.
class SessionCounts {
 public:
  struct Entry : CallCounts {
    explicit Entry(std::string_view function) : name(function) {}
    const std::string name;
  };

  /// Returns the entry of the function, or the shared entry for functions that have none of their
  /// own. The entry is never removed.
  [[nodiscard]] Entry* define(std::string_view function, bool of_library);
  void name(std::string_view peer);
  [[nodiscard]] std::string peer() const;

  /// Returns the number of calls and notifications, without the library's notifications.
  [[nodiscard]] std::uint64_t calls_made() const;
  /// Calls `visit(function, metrics)` for each entry, without a lock.
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

  mutable std::mutex mutex_;  // guards the members below, but not the contents of the entries
  std::string peer_;
  std::vector<std::unique_ptr<Entry>> entries_;
  Entry* library_ = nullptr;
  Entry* other_ = nullptr;
};

/// Counts the calls that a node makes over one session. The caller of the counting functions must
/// hold the session's lock, so no atomic addition is needed. Other threads may read at the same
/// time. At the end the counts are added to the node's.
class CallsMade {
 public:
  /// `node` may be null; then nothing is reported.
  explicit CallsMade(NodeCounters* node);
  ~CallsMade();
  CallsMade(const CallsMade&) = delete;
  CallsMade& operator=(const CallsMade&) = delete;

  /// Defines the next function; numbers start at 0. All functions of the library are counted
  /// together.
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
  /// An error of `bytes` bytes, which ends a call, was received. Call failed() next.
  void received(std::uint32_t function, std::uint64_t bytes) noexcept {
    add(by_number_[function]->bytes_received, bytes);
  }
  /// A call ended with a result (`latency` in ns) or with an error. Call one of these once for each
  /// call.
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
  std::vector<Entry*> by_number_;  // used under the session's lock
};

}  // namespace batchrpc
