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

#include "batchrpc/call/node_options.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"
#include "batchrpc/node/status_page.hpp"
#include "batchrpc/transport/stream.hpp"
#include "call/function_table.hpp"
#include "dispatch/workers.hpp"
#include "metrics/batcher_list.hpp"
#include "metrics/node_counters.hpp"
#include "node/fork_mark.hpp"
#include "peers/peer_table.hpp"
#include "recording/call_tracer.hpp"

namespace batchrpc {

class AdmissionQueue;
class ExclusiveCalls;
class Group;
class ParkedCalls;
class Retries;

/// What is behind a Node: the parts of a node, put together, and its life from joining to shutdown.
class NodeCore final : public SessionHost, public std::enable_shared_from_this<NodeCore> {
 public:
  /// Throws InvalidArgument or JoinFailed (an address in use); what joining finds goes into the
  /// future.
  static Future<std::shared_ptr<NodeCore>> start(const std::shared_ptr<NodeCore>& core);
  /// Ends one that has not joined, whose loop nobody drives.
  void abandon_start();
  explicit NodeCore(NodeOptions options);
  ~NodeCore() override;

  [[nodiscard]] std::shared_ptr<NodeCore> core() override { return shared_from_this(); }
  [[nodiscard]] const NodeOptions& options() const noexcept override { return options_; }
  [[nodiscard]] const Log& log() const noexcept override { return log_; }
  [[nodiscard]] LogLimits& log_limits() noexcept override { return log_limits_; }
  [[nodiscard]] wire::Hello own_hello() const override;
  [[nodiscard]] std::exception_ptr refusal() const override;
  [[nodiscard]] bool is_forked_copy() const noexcept override {
    return fork_mark_->is_forked_copy();
  }
  /// Whether this process is a child forked from the node's: threads of the parent may have held
  /// any lock of the node. Then nobody here destroys it either.
  static bool is_left_alone(const std::shared_ptr<NodeCore>& core);
  [[nodiscard]] std::shared_ptr<detail::ExposedFunction> resolve(
      std::string_view name, std::string_view signature) const override;
  [[nodiscard]] std::shared_ptr<detail::ExposedFunction> find_function(
      std::string_view name) const override {
    return functions_.find(name);
  }
  bool park(const std::string& function, detail::IncomingCall& call, RunAgain again) override;
  /// Adds a function, and runs the calls that have waited for it. Throws InvalidArgument (its name
  /// is taken) or ShutDown.
  void expose(std::shared_ptr<detail::ExposedFunction> function);
  void run_on_worker(Task task) override;
  [[nodiscard]] std::shared_ptr<AdmissionQueue> admission_queue() const override { return queue_; }
  [[nodiscard]] std::shared_ptr<PayloadMemory> payload_memory() const override {
    return payload_memory_;
  }
  void run_exclusively(std::shared_ptr<detail::ExposedFunction> function,
                       detail::IncomingCall call) override;
  std::shared_ptr<Session> find_session(const Session& half_open,
                                        const wire::Hello& hello) override;
  void admit(Session& session, const wire::Hello& hello) override;
  void session_detached(const std::shared_ptr<Session>& session, const std::string& why) override;
  void session_resumed(Session& session) override;
  void session_closed(const std::shared_ptr<Session>& session, const std::string& why) override;

  /// As Session::submit, to the peer of that name. Throws NotFound, NotSent or ShutDown, too.
  void submit(std::string_view peer, const detail::FunctionKey& function,
              detail::OutgoingOptions&& options, Encoder& encoder, detail::ReplyHandler&& handler);

  /// Ready when a call of so many bytes would be taken. Throws what submit() throws.
  Future<void> wait_for_credit(std::string_view peer, std::size_t bytes);

  [[nodiscard]] FunctionTable& functions() noexcept { return functions_; }
  [[nodiscard]] CallTracer& tracer() noexcept override { return tracer_; }
  [[nodiscard]] PeerTable& peers() noexcept { return *peers_; }
  [[nodiscard]] Retries& retries() noexcept { return *retries_; }
  [[nodiscard]] const std::string& name() const noexcept { return options_.name; }
  [[nodiscard]] int rank() const noexcept { return rank_.load(std::memory_order_relaxed); }
  /// The rank that the root has chosen.
  void set_rank(int rank);
  [[nodiscard]] const std::shared_ptr<Loop>& loop() const noexcept { return loop_; }
  [[nodiscard]] const std::shared_ptr<WaitContext>& context() const noexcept { return context_; }
  [[nodiscard]] std::shared_ptr<Executor> workers() const {
    return workers_ ? std::shared_ptr<Executor>(workers_) : loop_tasks_;
  }
  [[nodiscard]] const std::shared_ptr<Executor>& loop_tasks() const noexcept { return loop_tasks_; }
  [[nodiscard]] std::string address() const;
  /// Of the status page; empty: there is none.
  [[nodiscard]] std::string status_address() const;
  [[nodiscard]] Member self_member() const;
  /// Listens, and from then on advertises the address. Throws JoinFailed.
  std::string listen(const Address& address);
  /// Listens where options and the address seen at joining say so.
  void listen_for_peers(const std::optional<Address>& seen_from_root);
  /// The addresses by which this node would reach the member, best first.
  [[nodiscard]] std::vector<std::string> addresses_to_use(const Member& member) const;
  /// Adds a peer that the group announces.
  void add_member(const Member& member);

  /// What a layer above keeps with a node: made at the first asking, and destroyed with the node.
  template <class T>
  std::shared_ptr<T> extension() {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<void>& extension = extensions_[std::type_index(typeid(T))];
    if (!extension) extension = std::make_shared<T>(*this);
    return std::static_pointer_cast<T>(extension);
  }

  [[nodiscard]] std::uint64_t incarnation() const noexcept { return self_.incarnation; }

  /// What Node::metrics() says.
  [[nodiscard]] NodeMetrics metrics() const;
  [[nodiscard]] NodeCounters* counters() noexcept override { return &*counters_; }
  [[nodiscard]] BatcherList& batchers() noexcept { return batchers_; }
  /// `source` adds to the metrics whenever these are asked for. For layers above.
  using MetricsSource = std::function<void(NodeMetrics&)>;
  void on_metrics(MetricsSource source);

  using ChangeHandler = std::function<void(const PeerChange&)>;
  /// `handler` gets every change from now on; the number takes it back.
  std::uint64_t on_change(ChangeHandler handler);
  void forget_handler(std::uint64_t number);
  /// `report` says, at shutdown, what others still have of this node.
  using EndReport = std::function<std::vector<std::string>()>;
  void on_end_report(EndReport report);
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

  void changed(const PeerChange& change);
  void call_handlers(const PeerChange& change) const;
  std::optional<PeerWait> take_wait(std::uint64_t number);
  void end_waits(const std::string& peer);
  void schedule_tick();
  void seek_awaited();
  [[nodiscard]] Future<void> when(std::function<bool()> condition, TimePoint deadline);
  [[nodiscard]] bool step_on_loop(const std::function<void()>& step, TimePoint deadline);
  void look_for(std::function<bool()> condition, Promise<void> done, TimePoint deadline);
  void stop_listening();
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
  std::shared_ptr<Transport> transport_;
  std::shared_ptr<Executor> loop_tasks_;
  std::shared_ptr<Workers> workers_;  // null: the loop runs the handlers
  FunctionTable functions_;
  std::shared_ptr<ParkedCalls> parked_;
  std::shared_ptr<AdmissionQueue> queue_;  // null: nothing is limited
  const std::shared_ptr<PayloadMemory> payload_memory_ = std::make_shared<PayloadMemory>();
  std::shared_ptr<ExclusiveCalls> exclusive_;
  std::shared_ptr<Retries> retries_;
  CallTracer tracer_;
  std::unique_ptr<PeerTable> peers_;
  std::shared_ptr<Group> group_;
  std::atomic<bool> stopping_{false};
  TimePoint made_at_{};

  mutable std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<std::string> addresses_;
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
