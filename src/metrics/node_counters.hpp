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

/// All that a node counts of its calls, for as long as it lives. Thread-safe; only what is said to
/// is called for each call.
class NodeCounters {
 public:
  /// The loop outlives it.
  explicit NodeCounters(const Loop& loop);
  ~NodeCounters();
  NodeCounters(const NodeCounters&) = delete;
  NodeCounters& operator=(const NodeCounters&) = delete;

  /// Those of a function that is exposed, by the name that people know; one that is exposed again
  /// goes on with its own.
  [[nodiscard]] FunctionCounters& function(std::string_view name);
  /// Of all that is called and is not exposed.
  [[nodiscard]] FunctionCounters& unknown() noexcept { return unknown_; }

  /// A call of this node that went over no session, and has failed. Those to peers that nobody
  /// knows are counted together.
  void refused(std::string_view peer, std::string_view function, const Error& error, TimePoint now,
               bool is_known = true);

  /// Of a session, by its CallsMade. One whose peer has not said who it is, as when a node joins,
  /// does not count.
  /// @{
  void enter(std::shared_ptr<const SessionCounts> session);
  void leave(const std::shared_ptr<SessionCounts>& session);
  /// @}
  /// Waits for nobody who looks at what was counted.
  static void name(CallsMade& session, std::string_view peer) { session.counts()->name(peer); }

  /// Adds functions, peers (their names and calls only) and the sums of all.
  void report(NodeMetrics& metrics) const;

  RecentErrors errors;
  std::atomic<std::uint64_t> retries{0};

 private:
  // Of one peer, by function.
  struct Calls {
    std::map<std::string, CallMetrics, std::less<>> by_function{};
    std::uint64_t changed = 0;  // the latest has the largest
  };
  using ByPeer = std::map<std::string, Calls, std::less<>>;

  static constexpr std::size_t kMaxPastPeers = 1024;

  [[nodiscard]] static CallMetrics& of(Calls& peer, std::string_view function);
  [[nodiscard]] Calls& past(std::string_view peer);
  void forget_some_peers();

  const Stopwatch stopwatch_;
  FunctionCounters unknown_;
  FunctionCounters other_;

  mutable std::mutex mutex_;  // guards what follows
  std::map<std::string, std::unique_ptr<FunctionCounters>, std::less<>> functions_;
  std::vector<std::shared_ptr<const SessionCounts>> sessions_;
  ByPeer past_;  // of sessions that are gone
  std::uint64_t changes_ = 0;
};

}  // namespace batchrpc
