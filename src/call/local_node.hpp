#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <typeindex>
#include <typeinfo>
#include <vector>

#include "batchrpc/base/log.hpp"
#include "batchrpc/call/exposed.hpp"
#include "batchrpc/call/node_options.hpp"
#include "batchrpc/call/remote_call.hpp"
#include "batchrpc/transport/loop.hpp"
#include "call/function_table.hpp"
#include "call/peer_view.hpp"

namespace batchrpc {

class Node;

/// A node of this process, as used by layers that depend only on calls, such as remote references.
/// Lower layers pass it on without knowing its type (detail::CurrentNode). Thread-safe.
class LocalNode : public std::enable_shared_from_this<LocalNode> {
 public:
  virtual ~LocalNode();

  [[nodiscard]] virtual const std::string& name() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t incarnation() const noexcept = 0;
  [[nodiscard]] virtual const NodeOptions& options() const noexcept = 0;
  [[nodiscard]] virtual const Log& log() const noexcept = 0;
  [[nodiscard]] virtual const std::shared_ptr<Loop>& loop() const noexcept = 0;
  [[nodiscard]] virtual PeerView& peers() noexcept = 0;
  [[nodiscard]] virtual FunctionTable& functions() noexcept = 0;

  /// The error by which calls of the program's functions are refused; null: they may run.
  [[nodiscard]] virtual std::exception_ptr refusal() const = 0;
  /// Whether this is the copy in a forked child, where locks may be held by threads of the parent.
  [[nodiscard]] virtual bool is_forked_copy() const noexcept = 0;
  /// Whether this process is a child forked from the node's. Then `node` is never destroyed here.
  [[nodiscard]] static bool is_left_alone(const std::shared_ptr<LocalNode>& node);

  /// Returns a handle for the program, whose end does not end the node.
  [[nodiscard]] virtual std::shared_ptr<const Node> handle() = 0;

  /// The timeout of a call without one of its own. May be changed at any time.
  /// @{
  [[nodiscard]] Duration call_timeout() const noexcept {
    return call_timeout_.load(std::memory_order_relaxed);
  }
  void set_call_timeout(Duration timeout) noexcept {
    call_timeout_.store(timeout, std::memory_order_relaxed);
  }
  /// @}

  /// Whether calls of this node may be recorded. Then their start times are needed.
  [[nodiscard]] virtual bool may_record() const noexcept = 0;
  /// Sends a call to the peer of that name; `encoder` holds the arguments. Throws InvalidArgument,
  /// NotFound, NotSent or ShutDown.
  virtual void submit(std::string_view peer, const detail::FunctionKey& function,
                      detail::OutgoingOptions&& options, Encoder& encoder,
                      detail::ReplyHandler&& handler) = 0;
  /// Adds a function, and runs the calls that have waited for it. Throws InvalidArgument (its name
  /// is taken) or ShutDown.
  virtual void expose(std::shared_ptr<detail::ExposedFunction> function) = 0;
  /// Runs a task on a thread that runs handlers.
  virtual void run_on_worker(Task task) = 0;

  using ChangeHandler = std::function<void(const PeerChange&)>;
  /// Reports every change from now on to `handler`. Returns a number by which the handler is
  /// removed.
  virtual std::uint64_t on_change(ChangeHandler handler) = 0;
  /// Calls `source` whenever metrics are requested, to add its part.
  using MetricsSource = std::function<void(NodeMetrics&)>;
  virtual void on_metrics(MetricsSource source) = 0;
  /// At shutdown, calls `report` for texts about what other nodes still hold of this node.
  using EndReport = std::function<std::vector<std::string>()>;
  virtual void on_end_report(EndReport report) = 0;

  /// Returns the data that a layer above keeps with a node. It is made on first use, and destroyed
  /// with the node.
  template <class T>
  std::shared_ptr<T> extension() {
    const auto make = [this]() -> std::shared_ptr<void> { return std::make_shared<T>(*this); };
    return std::static_pointer_cast<T>(extension_of(typeid(T), make));
  }

 protected:
  /// Returns the extension of that type. If there is none, calls `make` under a lock.
  virtual std::shared_ptr<void> extension_of(
      std::type_index type, const std::function<std::shared_ptr<void>()>& make) = 0;

 private:
  std::atomic<Duration> call_timeout_{kNoTimeout};
};

}  // namespace batchrpc
