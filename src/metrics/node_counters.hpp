#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "batchrpc/metrics/node_metrics.hpp"
#include "metrics/call_counters.hpp"
#include "metrics/recent_errors.hpp"

namespace batchrpc {

/// All that a node counts about its calls during its lifetime. Thread-safe. Only the functions
/// marked as such are called for each call.
class NodeCounters {
 public:
  /// The loop must outlive this object.
  explicit NodeCounters(const Loop& loop);
  ~NodeCounters();
  NodeCounters(const NodeCounters&) = delete;
  NodeCounters& operator=(const NodeCounters&) = delete;

  /// Returns the counters of an exposed function, by the name without the mark of a method. A
  /// function that is exposed again continues with its previous counters.
  [[nodiscard]] FunctionCounters& function(std::string_view name);
  /// Returns the counters of calls to functions that are not exposed.
  [[nodiscard]] FunctionCounters& unknown() noexcept { return unknown_; }

  /// Counts a failed call of this node that no session carried. Calls to peers that no node knows
  /// are counted together.
  void refused(std::string_view peer, std::string_view function, const Error& error, TimePoint now,
               bool is_known = true);

  /// Called by a session's CallsMade. A session whose peer has not identified itself, for example
  /// during a join, does not count.
  /// @{
  void enter(std::shared_ptr<const SessionCounts> session);
  void leave(const std::shared_ptr<SessionCounts>& session);
  /// @}
  /// Names the peer of a session. Does not wait for readers.
  static void name(CallsMade& session, std::string_view peer) { session.counts()->name(peer); }

  /// Returns the number of calls and notifications that the node has made, without the library's
  /// notifications.
  [[nodiscard]] std::uint64_t calls_made() const;

  /// Adds functions, peers (only their names and calls) and the sums of all calls.
  void report(NodeMetrics& metrics) const;

  RecentErrors errors;
  std::atomic<std::uint64_t> retries{0};

 private:
  // The calls to one peer, by function.
  struct Calls {
    std::map<std::string, CallMetrics, std::less<>> by_function{};
    std::uint64_t changed = 0;  // the most recently changed one has the largest
  };
  using ByPeer = std::map<std::string, Calls, std::less<>>;

  static constexpr std::size_t kMaxPastPeers = 1024;

  [[nodiscard]] static CallMetrics& of(Calls& peer, std::string_view function);
  [[nodiscard]] Calls& past(std::string_view peer);
  void forget_some_peers();

  const Stopwatch stopwatch_;
  FunctionCounters unknown_;
  FunctionCounters other_;

  mutable std::mutex mutex_;  // guards the members below
  std::map<std::string, std::unique_ptr<FunctionCounters>, std::less<>> functions_;
  std::vector<std::shared_ptr<const SessionCounts>> sessions_;
  ByPeer past_;  // counts of sessions that have ended
  std::uint64_t changes_ = 0;
};

}  // namespace batchrpc
