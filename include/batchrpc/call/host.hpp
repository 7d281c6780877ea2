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

/// The node on which a callable is exposed, for callables that need more than arguments, such as a
/// Batcher. Such a callable has a member `exposed_on(const std::shared_ptr<Host>&)`, and answers
/// calls by a member `take_call(detail::RunningCall&&)`. Thread-safe.
///
/// A host does not keep its node from ending. After the node's end it destroys the tasks and
/// handlers that it is given, and no peer is live.
class BATCHRPC_EXPORT Host {
 public:
  Host() = default;
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  virtual ~Host();

  /// The node's name; empty: there is no node.
  [[nodiscard]] virtual const std::string& name() const noexcept = 0;
  /// The executor of handlers.
  [[nodiscard]] virtual const std::shared_ptr<Executor>& workers() const noexcept = 0;
  /// The executor of short tasks, which run on the driving thread.
  [[nodiscard]] virtual const std::shared_ptr<Executor>& loop_tasks() const noexcept = 0;
  /// The loop, for timers.
  [[nodiscard]] virtual const std::shared_ptr<Loop>& loop() const noexcept = 0;

  /// The name under which the callable is exposed; empty: it has none.
  [[nodiscard]] virtual const std::string& exposed_as() const noexcept = 0;
  /// The lock that the callable takes for its runs (ExposeOptions::exclusive). Null: none.
  [[nodiscard]] virtual const std::shared_ptr<AsyncMutex>& exclusive() const noexcept = 0;

  /// Whether a node of that name is in the group and not lost.
  [[nodiscard]] virtual bool is_live(std::string_view peer) const = 0;
  /// Whether that incarnation of a node is in the group and not lost. True for nodes of other
  /// groups.
  [[nodiscard]] virtual bool is_current(const PeerIdentity& peer) const = 0;
  /// Whether a node of that name is there or may still join. False for a name that a full group
  /// lacks.
  [[nodiscard]] virtual bool may_be_peer(std::string_view peer) const = 0;

  /// Calls the handler after any change of the group. Returns a number for forget(); 0: the handler
  /// was not taken.
  virtual std::uint64_t on_change(std::function<void()> handler) = 0;
  /// Calls the handler when the node has ended. Returns a number for forget(); 0: the handler was
  /// not taken.
  virtual std::uint64_t on_end(std::function<void()> handler) = 0;
  /// Removes a handler of on_change() or on_end(). If another thread is running it, it may still
  /// run after this has returned.
  virtual void forget(std::uint64_t number) = 0;

  /// Returns a batcher's figures, or nothing while the batcher is about to end.
  using BatcherFigures = std::function<std::optional<BatcherMetrics>()>;
  /// Adds a batcher's figures to Node::metrics(), under the name by which it is exposed, until
  /// forget_metrics(). Returns the number for that; 0: nobody asks for them.
  virtual std::uint64_t on_metrics(BatcherFigures figures) = 0;
  /// Removes the figures. `last` are the last ones.
  virtual void forget_metrics(std::uint64_t number, BatcherMetrics last) = 0;
};

}  // namespace batchrpc
