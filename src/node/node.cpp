#include "batchrpc/node/node.hpp"

#include <algorithm>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <thread>

#include "batchrpc/base/error.hpp"
#include "batchrpc/call/function_family.hpp"
#include "batchrpc/rref/object_names.hpp"
#include "batchrpc/rref/rref_report.hpp"
#include "node/ending_threads.hpp"
#include "node/node_core.hpp"
#include "node/node_host.hpp"
#include "rref/rref_parts.hpp"
#include "session/set_aside.hpp"

namespace batchrpc {

Node::Node(std::shared_ptr<NodeCore> core) : core_(std::move(core)) {}

Node::Node(NodeOptions options) {
  const bool embedded = options.io_context != nullptr;
  const Duration patience = std::min<Duration>(options.join_timeout, std::chrono::hours(24 * 365)) +
                            options.dead_after + std::chrono::seconds(1);
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

Node Node::from_env(NodeOptions options) {
  options.join = "env://";
  return Node(std::move(options));
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
  if (core_->is_own_thread() && !core_->options().loop) {
    // A callback dropped the last handle, and this thread cannot wait for its own end.
    auto* const io = core_->options().io_context;
    auto end_it = [core = std::move(core_), timeout] { core->shutdown(timeout); };
    if (io == nullptr) {
      std::thread(std::move(end_it)).detach();
    } else {  // its run() returns when the node has ended
      asio::use_service<EndingThreads>(*io).run(
          [work = asio::make_work_guard(*io), end_it = std::move(end_it)] { end_it(); });
    }
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

void Node::visit(const std::shared_ptr<NodeCore>& core,
                 const std::function<void(const Node&)>& use) {
  struct Handle {
    ~Handle() { node.core_.reset(); }
    Node node;
  } handle{Node(core)};
  use(handle.node);
}

void Node::submit(PeerRef peer, const detail::FunctionKey& function,
                  detail::OutgoingOptions&& options, Encoder& encoder,
                  detail::ReplyHandler&& handler) const {
  if (peer.name().empty()) {
    live_core().submit(peer_to_call(peer, function), function, std::move(options), encoder,
                       std::move(handler));
  } else {
    live_core().submit(peer.name(), function, std::move(options), encoder, std::move(handler));
  }
}

Future<void> Node::wait_for_credit(PeerRef peer, std::size_t bytes) const {
  NodeCore& core = live_core();
  try {
    return core.wait_for_credit(peer_name(peer), bytes);
  } catch (...) {
    return make_failed_future<void>(std::current_exception());
  }
}

std::string Node::peer_to_call(PeerRef peer, const detail::FunctionKey& function) const {
  try {
    return peer_name(peer);
  } catch (const Error& error) {
    NodeCore& core = live_core();
    core.counters()->refused("", shown_name(function), error, core.loop()->now(), false);
    throw;
  }
}

std::string Node::peer_name(PeerRef peer) const {
  if (peer.by_rank()) return live_core().peers().name_of(peer.rank());
  if (peer.name().empty()) {
    throw NotFound("no peer has the rank " + std::to_string(peer.rank()) +
                   " or an empty name: ranks start at 0");
  }
  return std::string(peer.name());
}

void Node::add_reserved(std::shared_ptr<detail::ExposedFunction> function) const {
  const std::string name = function->name;
  const std::string signature = function->signature;
  const FunctionTable& functions = live_core().functions();
  auto known = functions.find(name);
  if (!known) {
    try {
      live_core().expose(std::move(function));
      return;
    } catch (const InvalidArgument&) {  // another thread has exposed it meanwhile
      known = functions.find(name);
      if (!known) throw;
    }
  }
  if (known->signature == signature) return;
  const bool constructor = name.starts_with(detail::kCreatePrefix);
  throw InvalidArgument(
      std::string("expose: '") + std::string(shown_name(name)) + "' is exposed already, with " +
      (constructor ? "a constructor" : "a method") + " of the signature " +
      functions.shown_signature(name, known->signature) + ", not " +
      functions.shown_signature(name, signature) +
      (constructor ? "; peers create a class by one constructor: call unexpose_class first, or "
                     "expose a function that makes the object and returns an RRef to it (own())"
                   : "; an overloaded method is exposed once: call unexpose first, or give the "
                     "overloads names of their own"));
}

void Node::expose_function(std::shared_ptr<detail::ExposedFunction> function) const {
  if (function->name.starts_with(kReservedPrefix)) {
    throw InvalidArgument("expose: names that begin with 'batchrpc.' are the library's own");
  }
  live_core().expose(std::move(function));
}

void Node::expose(std::shared_ptr<detail::FunctionFamily> family) const {
  expose_function(std::move(family));
}

bool Node::unexpose(std::string_view name) const {
  if (name.starts_with(kReservedPrefix)) return false;
  FunctionTable& functions = live_core().functions();
  const bool function = functions.remove(name);
  const bool method = functions.remove(std::string(detail::kMethodPrefix).append(name));
  return function || method;
}

bool Node::remove_reserved(std::string_view name) const {
  return live_core().functions().remove(name);
}

std::string Node::schema(std::string_view name) const {
  const FunctionTable& functions = live_core().functions();
  for (const std::string_view prefix :
       {std::string_view(), detail::kMethodPrefix, detail::kCreatePrefix}) {
    if (const auto function = functions.find(std::string(prefix).append(name))) {
      return function->schema();
    }
  }
  const std::string near = functions.suggest(name, this->functions());
  throw NotFound("no function '" + std::string(name) + "' is exposed on " + live_core().name() +
                 (near.empty() ? "" : "; ") + near);
}

std::vector<std::string> Node::functions() const {
  std::vector<std::string> shown;
  for (const std::string& name : live_core().functions().names()) {
    const bool of_program = !name.starts_with(kReservedPrefix) ||
                            name.starts_with(detail::kMethodPrefix) ||
                            name.starts_with(detail::kCreatePrefix);
    if (of_program) shown.emplace_back(shown_name(name));
  }
  std::sort(shown.begin(), shown.end());
  shown.erase(std::unique(shown.begin(), shown.end()), shown.end());
  return shown;
}

std::vector<PeerInfo> Node::peers() const { return live_core().peers().snapshot(); }

Future<PeerInfo> Node::wait_for_peer(std::string name, Duration timeout) const {
  return live_core().wait_for_peer(std::move(name), timeout);
}

std::uint64_t Node::on_membership(std::function<void(const MembershipChange&)> handler) const {
  return live_core().on_change([handler = std::move(handler)](const PeerChange& change) {
    const bool joined = change.kind == PeerChange::Kind::joined;
    if (!joined && change.kind != PeerChange::Kind::lost) return;
    handler({.joined = joined, .peer = change.peer, .reason = change.reason});
  });
}

void Node::forget_membership_handler(std::uint64_t number) const {
  live_core().forget_handler(number);
}

std::vector<std::string> Node::shutdown(Duration timeout) {
  // A callback may wait, since its thread drives the loop meanwhile. A handler would wait for its
  // own end.
  const bool waits_for_itself = live_core().is_own_thread() &&
                                (!live_core().loop()->is_driving() || SetAside::is_in_handler());
  if (waits_for_itself) {
    throw InvalidArgument(
        "shutdown on a thread of node " + name() +
        ", while it runs a handler, would wait for itself; call it on another thread");
  }
  return live_core().shutdown(timeout);
}

std::shared_ptr<Executor> Node::workers() const { return live_core().workers(); }

NodeMetrics Node::metrics() const { return live_core().metrics(); }

std::shared_ptr<LocalNode> Node::local_node() const { return live_core().shared_from_this(); }

RRefReport Node::rrefs() const {
  return detail::report(*live_core().extension<detail::RrefParts>());
}

std::shared_ptr<Host> Node::host(std::string exposed_as,
                                 std::shared_ptr<AsyncMutex> exclusive) const {
  return std::make_shared<NodeHost>(live_core(), std::move(exposed_as), std::move(exclusive));
}

}  // namespace batchrpc
