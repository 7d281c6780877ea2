#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "batchrpc/base/executor.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/call/call_context.hpp"
#include "batchrpc/future/async_mutex.hpp"
#include "batchrpc/metrics/node_metrics.hpp"
#include "batchrpc/transport/loop.hpp"

namespace batchrpc {

/// The node on which a callable is exposed, for callables that take calls themselves, such as a
/// Batcher (detail::HostedAccess). A host may be used on any thread, also after the node's end,
/// which it does not delay. After it, tasks and handlers that it is given are destroyed, and no
/// peer is live. Thread-safe.
class BATCHRPC_EXPORT Host {
 public:
  Host() = default;
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  virtual ~Host();

  /// The node's name; empty if there is no node.
  [[nodiscard]] virtual const std::string& name() const noexcept = 0;
  /// The executor of handlers.
  [[nodiscard]] virtual const std::shared_ptr<Executor>& workers() const noexcept = 0;
  /// The executor of short tasks, on the driving thread.
  [[nodiscard]] virtual const std::shared_ptr<Executor>& loop_tasks() const noexcept = 0;
  /// The loop, for timers.
  [[nodiscard]] virtual const std::shared_ptr<Loop>& loop() const noexcept = 0;

  /// NodeOptions::liveness.dead_after.
  [[nodiscard]] virtual Duration dead_after() const noexcept = 0;

  /// The name under which the callable is exposed; empty if it is not exposed by name.
  [[nodiscard]] virtual const std::string& exposed_as() const noexcept = 0;
  /// ExposeOptions::exclusive: the lock that the callable takes for its work. Null: none.
  [[nodiscard]] virtual const std::shared_ptr<AsyncMutex>& exclusive() const noexcept = 0;

  /// Returns whether a node with that name is in the group and not lost.
  [[nodiscard]] virtual bool is_live(std::string_view peer) const = 0;
  /// Returns whether this incarnation of the node is; true for nodes of another group.
  [[nodiscard]] virtual bool is_current(const PeerIdentity& peer) const = 0;
  /// Returns whether there is, or may later be, a node with that name: false for a name that a
  /// complete group lacks.
  [[nodiscard]] virtual bool may_be_peer(std::string_view peer) const = 0;

  /// Calls `handler` after any change of the group. The returned number cancels it; 0 means that it
  /// was not registered.
  virtual std::uint64_t on_change(std::function<void()> handler) = 0;
  /// Calls `handler` when the node has ended. The returned number cancels it; 0 means that it was
  /// not registered.
  virtual std::uint64_t on_end(std::function<void()> handler) = 0;
  /// Cancels a handler of on_change or on_end. If another thread is running the handler, it may
  /// continue after this returns.
  virtual void forget(std::uint64_t number) = 0;

  /// Returns a batcher's statistics: nothing if the batcher is about to end.
  using BatcherStatistics = std::function<std::optional<BatcherMetrics>()>;
  /// Makes Node::metrics() ask the batcher for its statistics, under the name by which it is
  /// exposed, until forget_metrics(). Returns 0 if they are never asked for.
  virtual std::uint64_t on_metrics(BatcherStatistics statistics) = 0;
  /// Ends the reports of a batcher; `last` are its last statistics.
  virtual void forget_metrics(std::uint64_t number, BatcherMetrics last) = 0;
};

}  // namespace batchrpc
