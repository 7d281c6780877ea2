#include "batchrpc/node/node_access.hpp"

#include <string>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "batchrpc/call/caller.hpp"
#include "batchrpc/call/function_family.hpp"
#include "batchrpc/node/node.hpp"
#include "batchrpc/node/peer.hpp"
#include "batchrpc/rref/object_names.hpp"
#include "call/call_diagnostics_text.hpp"
#include "node/node_core.hpp"
#include "node/node_host.hpp"

namespace batchrpc {

namespace {

NodeCore& require(NodeCore* core) {
  if (core == nullptr) {
    throw ShutDown("the node of this Peer has ended; make a new node, and a Peer of that one");
  }
  return *core;
}

}  // namespace

namespace detail {

const std::shared_ptr<NodeCore>& NodeAccess::core(const Node& node) {
  static_cast<void>(node.live_core());
  return node.core_;
}

std::shared_ptr<LocalNode> NodeAccess::local(const Node& node) { return core(node); }

std::shared_ptr<LocalNode> NodeAccess::local(const std::shared_ptr<NodeCore>& core) {
  static_cast<void>(require(core.get()));
  return core;
}

std::shared_ptr<const Node> NodeAccess::handle(std::shared_ptr<NodeCore> core) {
  struct Handle {
    explicit Handle(std::shared_ptr<NodeCore> of) : node(std::move(of)) {}
    ~Handle() { node.core_.reset(); }
    Node node;
  };
  const auto made = std::make_shared<Handle>(std::move(core));
  return {made, &made->node};
}

std::shared_ptr<Host> NodeAccess::host(const Node& node, std::string exposed_as,
                                       std::shared_ptr<AsyncMutex> exclusive) {
  return std::make_shared<NodeHost>(node.live_core(), std::move(exposed_as), std::move(exclusive));
}

void NodeAccess::expose(const Node& node, std::shared_ptr<FunctionFamily> family) {
  node.expose_function(std::move(family));
}

void NodeAccess::expose_own(const Node& node, std::shared_ptr<ExposedFunction> function) {
  const std::string name = function->name;
  const std::string signature = function->signature;
  NodeCore& core = node.live_core();
  const FunctionTable& functions = core.functions();
  auto known = functions.find(name);
  if (!known) {
    try {
      core.expose(std::move(function));
      return;
    } catch (const InvalidArgument&) {  // another thread has exposed it meanwhile
      known = functions.find(name);
      if (!known) throw;
    }
  }
  if (known->signature == signature) return;
  const bool constructor = name.starts_with(kCreatePrefix);
  const std::string shown(shown_name(name));
  throw InvalidArgument(
      "expose: '" + shown + "' is exposed already, with " +
      (constructor ? "a constructor" : "a method") + " of the signature " +
      functions.shown_signature(name, known->signature) + ", not " +
      functions.shown_signature(name, signature) +
      (constructor ? "; peers create a class by one constructor: call unexpose(\"" + shown +
                         "\") first, or expose a function that makes the object and returns an "
                         "RRef to it (own())"
                   : "; a name has one overload: call unexpose first, or expose the other overload "
                     "under a name of its own"));
}

OutgoingOptions NodeAccess::outgoing(const CallOptions& options, NodeCore* core) {
  return detail::outgoing(options, core);
}

std::string NodeAccess::name_of(NodeCore& core, PeerRef peer) {
  core.refuse_forked_copy();
  if (peer.by_rank()) return core.peers().name_of(peer.rank());
  if (peer.name().empty()) {
    throw NotFound("no peer has the rank " + std::to_string(peer.rank()) +
                   " or an empty name: ranks start at 0");
  }
  return std::string(peer.name());
}

void NodeAccess::submit(NodeCore* core, PeerRef peer, const FunctionKey& function,
                        OutgoingOptions&& options, Encoder& encoder, ReplyHandler&& handler) {
  NodeCore& node = require(core);
  if (!peer.name().empty()) {
    node.submit(peer.name(), function, std::move(options), encoder, std::move(handler));
    return;
  }
  node.refuse_forked_copy();
  std::string name;
  try {
    name = name_of(node, peer);
  } catch (const Error& error) {
    node.counters()->refused("", shown_name(function), error, node.loop()->now(), false);
    throw;
  }
  node.submit(name, function, std::move(options), encoder, std::move(handler));
}

}  // namespace detail

Future<void> Peer::wait_for_credit(std::size_t bytes) const {
  try {
    const std::shared_ptr<NodeCore> core = core_.lock();
    NodeCore& node = require(core.get());
    return node.wait_for_credit(detail::NodeAccess::name_of(node, peer_), bytes);
  } catch (...) {
    return make_failed_future<void>(std::current_exception());
  }
}

}  // namespace batchrpc
