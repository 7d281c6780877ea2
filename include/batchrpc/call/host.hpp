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

/// The node that a callable is exposed on, for callables that need more than arguments: one with a
/// member `exposed_on(const std::shared_ptr<Host>&)` is told, as a Batcher is; it then answers
/// calls by a member `take_call(detail::RunningCall&&)`. A host may be used on any thread and
/// after the node's end, which it does not put off: tasks are then destroyed, nobody is live, and
/// handlers that are given to it are destroyed. Thread-safe.
class BATCHRPC_EXPORT Host {
 public:
  Host() = default;
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  virtual ~Host();

  /// The node's name; empty: there is no node.
  [[nodiscard]] virtual const std::string& name() const noexcept = 0;
  /// Where handlers run.
  [[nodiscard]] virtual const std::shared_ptr<Executor>& workers() const noexcept = 0;
  /// For short tasks, on the driving thread.
  [[nodiscard]] virtual const std::shared_ptr<Executor>& loop_tasks() const noexcept = 0;
  /// For timers.
  [[nodiscard]] virtual const std::shared_ptr<Loop>& loop() const noexcept = 0;

  /// The name under which the callable is exposed; empty: nobody knows it.
  [[nodiscard]] virtual const std::string& exposed_as() const noexcept = 0;
  /// ExposeOptions::exclusive: the lock that the callable takes for what it runs. Null: none.
  [[nodiscard]] virtual const std::shared_ptr<AsyncMutex>& exclusive() const noexcept = 0;

  /// Whether a node of that name is in the group and not lost.
  [[nodiscard]] virtual bool is_live(std::string_view peer) const = 0;
  /// Whether that very incarnation of a node is; true of nodes of another group.
  [[nodiscard]] virtual bool is_current(const PeerIdentity& peer) const = 0;
  /// Whether there is, or may yet be, a node of that name: false for a name that a full group
  /// lacks.
  [[nodiscard]] virtual bool may_be_peer(std::string_view peer) const = 0;

  /// Calls back after any change of the group. The number takes the handler back; 0: it was not
  /// taken.
  virtual std::uint64_t on_change(std::function<void()> handler) = 0;
  /// Calls back when the node has ended. The number takes the handler back; 0: it was not taken.
  virtual std::uint64_t on_end(std::function<void()> handler) = 0;
  /// Takes a handler of on_change or on_end back. One that another thread is running may go on
  /// running after this has returned.
  virtual void forget(std::uint64_t number) = 0;

  /// A batcher's figures: nothing while the batcher is about to end.
  using BatcherFigures = std::function<std::optional<BatcherMetrics>()>;
  /// Of a batcher: has Node::metrics() ask for its figures, under the name by which it is exposed,
  /// until forget_metrics(). 0: nobody asks for them.
  virtual std::uint64_t on_metrics(BatcherFigures figures) = 0;
  /// Takes the figures back, of which `last` are the last.
  virtual void forget_metrics(std::uint64_t number, BatcherMetrics last) = 0;
};

}  // namespace batchrpc
