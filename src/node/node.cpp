#include "batchrpc/node/node.hpp"

#include <algorithm>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <system_error>
#include <thread>

#include "batchrpc/base/error.hpp"
#include "batchrpc/rref/object_names.hpp"
#include "node/ending_threads.hpp"
#include "node/node_core.hpp"
#include "session/set_aside.hpp"

namespace batchrpc {
namespace {

// Ends a node on another thread: its own cannot wait for its own end. If the system starts no more
// threads now, it may later.
void end_on_another_thread(std::shared_ptr<NodeCore> ending) {
  constexpr Duration kUntilNextTry = std::chrono::milliseconds(100);
  auto* const io = ending->options().io_context;
  const auto loop = ending->loop();
  const auto held = std::make_shared<std::shared_ptr<NodeCore>>(std::move(ending));
  const auto end_it = [held] {
    const auto core = std::move(*held);
    core->shutdown(core->options().shutdown_timeout);
  };
  try {
    if (io == nullptr) {
      std::thread(end_it).detach();
    } else {  // its run() returns when the node has ended
      asio::use_service<EndingThreads>(*io).run(
          [work = asio::make_work_guard(*io), end_it] { end_it(); });
    }
  } catch (const std::system_error&) {
    loop->schedule(loop->now() + kUntilNextTry,
                   [held] { end_on_another_thread(std::move(*held)); });
  }
}

}  // namespace

Node::Node(std::shared_ptr<NodeCore> core) : core_(std::move(core)) {}

Node::Node(NodeOptions options) {
  const bool embedded = options.io_context != nullptr;
  const Duration patience = std::min<Duration>(options.join_timeout, std::chrono::hours(24 * 365)) +
                            options.liveness.dead_after + std::chrono::seconds(1);
  const auto core = std::make_shared<NodeCore>(std::move(options));
  auto started = NodeCore::start(core);
  if (embedded && !started.wait_for(patience)) {
    core->abandon_start();
    throw JoinFailed(
        "no thread ran NodeOptions::io_context while the node waited to join; run it on another "
        "thread, or make the node by Node::start() and run it then");
  }
  core_ = std::move(started).get();
}

Future<Node> Node::start(NodeOptions options) {
  return NodeCore::start(std::make_shared<NodeCore>(std::move(options)))
      .then([](std::shared_ptr<NodeCore> core) { return Node(std::move(core)); });
}

Node::Node(Node&&) noexcept = default;

Node& Node::operator=(Node&& other) noexcept {
  if (this == &other) return *this;
  Node ended(std::move(*this));
  core_ = std::move(other.core_);
  return *this;
}

Node::~Node() {
  if (!core_ || NodeCore::is_left_alone(core_)) return;
  const Duration timeout = core_->options().shutdown_timeout;
  if (core_->is_own_thread() && !core_->options().simulation.loop) {
    // A callback dropped the last handle, and this thread cannot wait for its own end.
    end_on_another_thread(std::move(core_));
    return;
  }
  core_->shutdown(timeout);
}

NodeCore& Node::live_core() const {
  if (!core_) throw InvalidArgument("this Node was moved from; use the Node that it was moved to");
  return *core_;
}

const std::string& Node::name() const noexcept {
  static const std::string none;
  return core_ ? core_->name() : none;
}
int Node::rank() const noexcept { return core_ ? core_->rank() : -1; }
int Node::world_size() const noexcept { return core_ ? core_->options().world_size : 0; }
std::string Node::address() const { return live_core().address(); }
std::string Node::status_address() const { return live_core().status_address(); }

Peer Node::peer(PeerRef peer) const { return {live_core().weak_from_this(), peer}; }

Peers Node::no_peers() const { return Peers(live_core().weak_from_this()); }

void Node::expose_function(std::shared_ptr<detail::ExposedFunction> function) const {
  if (function->name.starts_with(kReservedPrefix)) {
    throw InvalidArgument("expose: names that begin with 'batchrpc.' are the library's own");
  }
  live_core().expose(std::move(function));
}

void Node::ready() const { live_core().expect_no_more_functions(); }

bool Node::unexpose(std::string_view name) const {
  if (name.starts_with(kReservedPrefix)) return false;
  FunctionTable& functions = live_core().functions();
  bool removed = functions.remove(name);
  removed |= functions.remove(std::string(detail::kValuePrefix).append(name));
  for (const std::string_view prefix : detail::kShownPrefixes)
    removed |= functions.remove(std::string(prefix).append(name));
  return removed;
}

Duration Node::call_timeout() const { return live_core().call_timeout(); }

void Node::set_call_timeout(Duration timeout) const {
  if (timeout <= Duration::zero()) {
    throw InvalidArgument("set_call_timeout: the timeout must be positive");
  }
  live_core().set_call_timeout(timeout);
}

std::vector<PeerInfo> Node::peers() const { return live_core().peers().snapshot(); }

Future<PeerInfo> Node::wait_for_peer(std::string name, Duration timeout) const {
  return live_core().wait_for_peer(std::move(name), timeout);
}

MembershipSubscription Node::on_membership(
    std::function<void(const MembershipChange&)> handler) const {
  if (!handler) throw InvalidArgument("on_membership: the handler is an empty function");
  NodeCore& core = live_core();
  const std::uint64_t number =
      core.on_change([handler = std::move(handler)](const PeerChange& change) {
        const bool joined = change.kind == PeerChange::Kind::joined;
        if (!joined && change.kind != PeerChange::Kind::lost) return;
        handler({.joined = joined, .peer = change.peer, .reason = change.reason});
      });
  return {core.weak_from_this(), number};
}

void MembershipSubscription::cancel() const {
  const std::shared_ptr<NodeCore> core = core_.lock();
  if (core && !core->is_forked_copy()) core->forget_handler(number_);
}

// A callback may wait, since its thread drives the loop meanwhile. A handler would wait for its own
// end.
void Node::refuse_to_end_itself(std::string_view function) const {
  const bool waits_for_itself = live_core().is_own_thread() &&
                                (!live_core().loop()->is_driving() || SetAside::is_in_handler());
  if (waits_for_itself) {
    throw InvalidArgument(
        std::string(function) + " on a thread of node " + name() +
        ", while it runs a handler, would wait for itself; call it on another thread");
  }
}

std::vector<std::string> Node::shutdown(Duration timeout) {
  refuse_to_end_itself("shutdown");
  return live_core().shutdown(timeout);
}

std::vector<std::string> Node::shutdown_together(Duration timeout) {
  refuse_to_end_itself("shutdown_together");
  return live_core().shutdown_together(timeout);
}

std::shared_ptr<Executor> Node::workers() const { return live_core().workers(); }

NodeMetrics Node::metrics() const { return live_core().metrics(); }

}  // namespace batchrpc
