#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <typeindex>
#include <vector>

#include "batchrpc/base/export.hpp"
#include "batchrpc/call/node_options.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/node/node_access.hpp"
#include "call/function_table.hpp"
#include "call/local_node.hpp"
#include "node/change_handlers.hpp"
#include "node/node_addresses.hpp"
#include "node/node_extensions.hpp"
#include "node/node_identity.hpp"
#include "node/node_statistics.hpp"
#include "node/node_threads.hpp"
#include "node/peer_waits.hpp"
#include "node/repeated_task.hpp"
#include "peers/peer_table.hpp"
#include "recording/call_tracer.hpp"

namespace batchrpc {

class CallDispatcher;
class Group;
class GroupEnd;
class Retries;

/// The implementation of Node. Puts the parts of a node together, starts them and ends them. The
/// components, each a library of its own, use it too: what they call is exported, or inline.
class NodeCore final : public SessionHost, public LocalNode {
 public:
  /// Begins to join. The future fails with what joining finds. Throws InvalidArgument, or
  /// JoinFailed for an address in use.
  static Future<std::shared_ptr<NodeCore>> start(const std::shared_ptr<NodeCore>& core);
  /// Ends a node that has not joined because no thread drives its loop.
  void abandon_start();
  explicit NodeCore(NodeOptions options);
  ~NodeCore() override;

  [[nodiscard]] std::shared_ptr<NodeCore> shared_from_this() {
    return std::static_pointer_cast<NodeCore>(LocalNode::shared_from_this());
  }
  [[nodiscard]] std::weak_ptr<NodeCore> weak_from_this() {
    return std::static_pointer_cast<NodeCore>(LocalNode::weak_from_this().lock());
  }
  [[nodiscard]] std::shared_ptr<LocalNode> node() override { return shared_from_this(); }
  [[nodiscard]] std::shared_ptr<const Node> handle() override {
    return detail::NodeAccess::handle(shared_from_this());
  }
  [[nodiscard]] const SessionParts& parts() const noexcept override { return session_parts_; }
  [[nodiscard]] const NodeOptions& options() const noexcept override { return options_; }
  [[nodiscard]] const Log& log() const noexcept override { return log_; }
  [[nodiscard]] wire::Hello own_hello() const override { return identity_.hello(); }
  [[nodiscard]] BATCHRPC_EXPORT std::exception_ptr refusal() const override;
  [[nodiscard]] bool is_forked_copy() const noexcept override { return threads_.is_forked_copy(); }
  /// Throws if this is the copy in a forked child, before its locks are used.
  void refuse_forked_copy() const { threads_.refuse_forked_copy(); }
  void expose(std::shared_ptr<detail::ExposedFunction> function) override;
  /// From now on no call waits for its function.
  void expect_no_more_functions();
  void run_on_worker(Task task) override;
  [[nodiscard]] std::shared_ptr<PayloadMemory> payload_memory() const {
    return session_parts_.payload_memory;
  }
  std::shared_ptr<Session> find_session(const Session& half_open,
                                        const wire::Hello& hello) override;
  void address(wire::Hello& hello, std::string_view peer) const override;
  [[nodiscard]] bool admit(Session& session, const wire::Hello& hello) override;
  void session_detached(const std::shared_ptr<Session>& session, const std::string& why) override;
  void session_resumed(Session& session) override;
  void session_closed(const std::shared_ptr<Session>& session, const std::string& why) override;

  [[nodiscard]] bool may_record() const noexcept override { return tracer_.is_active(); }
  BATCHRPC_EXPORT void submit(std::string_view peer, const detail::FunctionKey& function,
                              detail::OutgoingOptions&& options, Encoder& encoder,
                              detail::ReplyHandler&& handler) override;

  /// Ready when the peer would take a call of `bytes` bytes. Throws what submit() throws.
  Future<void> wait_for_credit(std::string_view peer, std::size_t bytes);

  [[nodiscard]] FunctionTable& functions() noexcept override { return functions_; }
  [[nodiscard]] CallTracer& tracer() noexcept { return tracer_; }
  [[nodiscard]] PeerTable& peers() noexcept override { return *peers_; }
  [[nodiscard]] Retries& retries() noexcept { return *retries_; }
  [[nodiscard]] const std::string& name() const noexcept override { return options_.name; }
  [[nodiscard]] int rank() const noexcept { return identity_.rank(); }
  /// Sets the rank that the root has chosen.
  void set_rank(int rank);
  [[nodiscard]] std::uint64_t incarnation() const noexcept override {
    return identity_.incarnation();
  }
  [[nodiscard]] const std::shared_ptr<Loop>& loop() const noexcept override {
    return threads_.loop();
  }
  [[nodiscard]] std::shared_ptr<Executor> workers() const { return threads_.workers(); }
  [[nodiscard]] const std::shared_ptr<Executor>& loop_tasks() const noexcept {
    return threads_.loop_tasks();
  }
  [[nodiscard]] bool is_own_thread() const { return threads_.is_own_thread(); }
  [[nodiscard]] NodeAddresses& addresses() noexcept { return addresses_; }
  [[nodiscard]] std::string address() const { return addresses_.listening().address(); }
  /// Returns the address of the status page; empty if there is none.
  [[nodiscard]] std::string status_address() const { return extensions_.status_address(); }
  /// Adds a peer that the group announces.
  void add_member(const Member& member);

  /// Returns what Node::metrics() returns.
  [[nodiscard]] NodeMetrics metrics() const;
  [[nodiscard]] NodeCounters* counters() noexcept { return &statistics_.counters(); }
  [[nodiscard]] BatcherList& batchers() noexcept { return statistics_.batchers(); }
  void on_metrics(MetricsSource source) override;

  BATCHRPC_EXPORT std::uint64_t on_change(ChangeHandler handler) override;
  BATCHRPC_EXPORT void forget_handler(std::uint64_t number);
  void on_end_report(EndReport report) override;
  Future<PeerInfo> wait_for_peer(std::string peer, Duration timeout);

  /// How the group ends together (Node::shutdown_together).
  [[nodiscard]] GroupEnd& group_end() noexcept;
  /// Waits until the group ends, and ends the node (Node::shutdown_together).
  std::vector<std::string> shutdown_together(Duration timeout);
  /// Ends the node (Node::shutdown). Returns what was not finished; nothing the second time.
  std::vector<std::string> shutdown(Duration timeout);

 private:
  class Shutdown;

  std::shared_ptr<void> extension_of(std::type_index type,
                                     const std::function<std::shared_ptr<void>()>& make) override;
  void changed(const PeerChange& change);
  void tick();
  void open_status_page();  // throws InvalidArgument or JoinFailed
  void expose_recorded_calls();

  const NodeOptions options_;
  const Log log_;
  LogLimits log_limits_;
  NodeIdentity identity_;
  NodeThreads threads_;
  NodeStatistics statistics_;
  NodeAddresses addresses_;
  FunctionTable functions_;
  CallTracer tracer_;
  const std::unique_ptr<CallDispatcher> calls_;
  const SessionParts session_parts_;  // refers to members above
  const std::shared_ptr<Retries> retries_;
  const std::unique_ptr<PeerTable> peers_;
  const std::shared_ptr<Group> group_;
  PeerWaits waits_;
  ChangeHandlers handlers_;
  NodeExtensions extensions_;
  RepeatedTask tick_;
  RepeatedTask denied_look_;
  std::atomic<bool> stopping_{false};
};

}  // namespace batchrpc
