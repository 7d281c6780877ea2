#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <typeindex>
#include <vector>

#include "batchrpc/base/export.hpp"
#include "batchrpc/call/node_options.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"
#include "batchrpc/node/status_page.hpp"
#include "call/function_table.hpp"
#include "call/local_node.hpp"
#include "dispatch/workers.hpp"
#include "metrics/batcher_list.hpp"
#include "metrics/node_counters.hpp"
#include "node/fork_mark.hpp"
#include "node/listening.hpp"
#include "peers/peer_table.hpp"
#include "recording/call_tracer.hpp"
#include "transport/transport_set.hpp"

namespace batchrpc {

class CallDispatcher;
class Group;
class Retries;

/// What is behind a Node: the parts of a node, put together, and its life from joining to shutdown.
/// The components use it too, each a library of its own: what they call is exported, or inline.
class NodeCore final : public SessionHost, public LocalNode {
 public:
  /// Throws InvalidArgument or JoinFailed (an address in use); what joining finds goes into the
  /// future.
  static Future<std::shared_ptr<NodeCore>> start(const std::shared_ptr<NodeCore>& core);
  /// Ends one that has not joined, whose loop nobody drives.
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
  [[nodiscard]] const SessionParts& parts() const noexcept override { return *session_parts_; }
  [[nodiscard]] const NodeOptions& options() const noexcept override { return options_; }
  [[nodiscard]] const Log& log() const noexcept override { return log_; }
  [[nodiscard]] wire::Hello own_hello() const override;
  [[nodiscard]] BATCHRPC_EXPORT std::exception_ptr refusal() const override;
  [[nodiscard]] bool is_forked_copy() const noexcept override {
    return fork_mark_->is_forked_copy();
  }
  void expose(std::shared_ptr<detail::ExposedFunction> function) override;
  void run_on_worker(Task task) override;
  [[nodiscard]] std::shared_ptr<PayloadMemory> payload_memory() const { return payload_memory_; }
  std::shared_ptr<Session> find_session(const Session& half_open,
                                        const wire::Hello& hello) override;
  void admit(Session& session, const wire::Hello& hello) override;
  void session_detached(const std::shared_ptr<Session>& session, const std::string& why) override;
  void session_resumed(Session& session) override;
  void session_closed(const std::shared_ptr<Session>& session, const std::string& why) override;

  [[nodiscard]] bool may_record() const noexcept override { return tracer_.is_active(); }
  BATCHRPC_EXPORT void submit(std::string_view peer, const detail::FunctionKey& function,
                              detail::OutgoingOptions&& options, Encoder& encoder,
                              detail::ReplyHandler&& handler) override;

  /// Ready when a call of so many bytes would be taken. Throws what submit() throws.
  Future<void> wait_for_credit(std::string_view peer, std::size_t bytes);

  [[nodiscard]] FunctionTable& functions() noexcept override { return functions_; }
  [[nodiscard]] CallTracer& tracer() noexcept { return tracer_; }
  [[nodiscard]] PeerTable& peers() noexcept override { return *peers_; }
  [[nodiscard]] Retries& retries() noexcept { return *retries_; }
  [[nodiscard]] const std::string& name() const noexcept override { return options_.name; }
  [[nodiscard]] int rank() const noexcept { return rank_.load(std::memory_order_relaxed); }
  /// The rank that the root has chosen.
  void set_rank(int rank);
  [[nodiscard]] const std::shared_ptr<Loop>& loop() const noexcept override { return loop_; }
  [[nodiscard]] const std::shared_ptr<WaitContext>& context() const noexcept { return context_; }
  [[nodiscard]] std::shared_ptr<Executor> workers() const {
    return workers_ ? std::shared_ptr<Executor>(workers_) : loop_tasks_;
  }
  [[nodiscard]] const std::shared_ptr<Executor>& loop_tasks() const noexcept { return loop_tasks_; }
  [[nodiscard]] std::string address() const { return listening_->address(); }
  /// Of the status page; empty: there is none.
  [[nodiscard]] std::string status_address() const;
  [[nodiscard]] Member self_member() const;
  [[nodiscard]] const TransportSet& transports() const noexcept { return *transports_; }
  [[nodiscard]] Listening& listening() noexcept { return *listening_; }
  /// A better way to the member than the address by which it was reached; empty: there is none.
  [[nodiscard]] std::string better_address(const Member& member, const std::string& used) const;
  /// Adds a peer that the group announces.
  void add_member(const Member& member);

  [[nodiscard]] std::uint64_t incarnation() const noexcept override { return self_.incarnation; }

  /// What Node::metrics() says.
  [[nodiscard]] NodeMetrics metrics() const;
  [[nodiscard]] NodeCounters* counters() noexcept { return &*counters_; }
  [[nodiscard]] BatcherList& batchers() noexcept { return batchers_; }
  void on_metrics(MetricsSource source) override;

  BATCHRPC_EXPORT std::uint64_t on_change(ChangeHandler handler) override;
  BATCHRPC_EXPORT void forget_handler(std::uint64_t number);
  void on_end_report(EndReport report) override;
  Future<PeerInfo> wait_for_peer(std::string name, Duration timeout);

  std::vector<std::string> shutdown(Duration timeout);
  [[nodiscard]] bool is_own_thread() const;

 private:
  // Who waits for a peer.
  struct PeerWait {
    std::string name;
    Promise<PeerInfo> promise;
    TimerId timer = 0;
  };

  std::shared_ptr<void> extension_of(std::type_index type,
                                     const std::function<std::shared_ptr<void>()>& make) override;
  // The addresses by which this node would reach the member, best first.
  [[nodiscard]] std::vector<std::string> addresses_to_use(const Member& member) const;
  [[nodiscard]] bool is_on_this_host(const Member& member) const;
  void changed(const PeerChange& change);
  void call_handlers(const PeerChange& change) const;
  std::optional<PeerWait> take_wait(std::uint64_t number);
  void end_waits(const std::string& peer);
  void schedule_tick();
  void seek_awaited();
  [[nodiscard]] Future<void> when(std::function<bool()> condition, TimePoint deadline);
  [[nodiscard]] bool step_on_loop(const std::function<void()>& step, TimePoint deadline);
  void look_for(std::function<bool()> condition, Promise<void> done, TimePoint deadline);
  void open_status_page();  // throws InvalidArgument or JoinFailed
  void close_status_page();
  void expose_recorded_calls();

  NodeOptions options_;
  const Log log_;
  LogLimits log_limits_;
  PeerIdentity self_;
  BatcherList batchers_;
  const std::string host_;
  const std::shared_ptr<const ForkMark> fork_mark_ = std::make_shared<ForkMark>();
  std::atomic<int> rank_;
  std::shared_ptr<Loop> loop_;
  std::optional<NodeCounters> counters_;  // for as long as there is a loop
  bool own_loop_ = false;
  std::shared_ptr<WaitContext> context_;
  std::unique_ptr<TransportSet> transports_;
  std::unique_ptr<Listening> listening_;
  std::shared_ptr<Executor> loop_tasks_;
  std::shared_ptr<Workers> workers_;  // null: the loop runs the handlers
  FunctionTable functions_;
  std::unique_ptr<CallDispatcher> calls_;
  const std::shared_ptr<PayloadMemory> payload_memory_ = std::make_shared<PayloadMemory>();
  std::shared_ptr<Retries> retries_;
  CallTracer tracer_;
  std::optional<SessionParts> session_parts_;  // of the above
  std::unique_ptr<PeerTable> peers_;
  std::shared_ptr<Group> group_;
  std::atomic<bool> stopping_{false};
  TimePoint made_at_{};

  mutable std::mutex mutex_;  // guards what follows
  std::vector<std::pair<std::uint64_t, std::shared_ptr<ChangeHandler>>> handlers_;
  std::map<std::uint64_t, PeerWait> waits_;
  std::uint64_t next_handler_ = 1;  // and wait
  std::vector<EndReport> end_reports_;
  std::vector<MetricsSource> metrics_sources_;
  std::map<std::type_index, std::shared_ptr<void>> extensions_;
  TimerId tick_ = 0;
  bool stopped_ = false;  // shutting down
  bool ended_ = false;    // and drained
  std::unique_ptr<detail::StatusPage> status_page_;
};

}  // namespace batchrpc
