#pragma once

#include <memory>
#include <string>
#include <type_traits>

#include "batchrpc/base/export.hpp"
#include "batchrpc/call/exposed.hpp"
#include "batchrpc/call/node_options.hpp"
#include "batchrpc/call/peer_ref.hpp"

namespace batchrpc {
class LocalNode;
class Node;
class NodeCore;
}  // namespace batchrpc

namespace batchrpc::detail {

class FunctionFamily;

template <class Object>
struct IsSharedPointer : std::false_type {};
template <class T>
struct IsSharedPointer<std::shared_ptr<T>> : std::true_type {};

/// What the library's own parts use of a node, and programs do not. Thread-safe, as Node is.
struct BATCHRPC_EXPORT NodeAccess {
  /// Returns the implementation. Throws InvalidArgument for a moved-from node.
  [[nodiscard]] static const std::shared_ptr<NodeCore>& core(const Node& node);
  /// Returns it as the layers below `node` know it. Throws the same, and ShutDown for a null
  /// `core`, which stands for a node that has ended.
  [[nodiscard]] static std::shared_ptr<LocalNode> local(const Node& node);
  [[nodiscard]] static std::shared_ptr<LocalNode> local(const std::shared_ptr<NodeCore>& core);
  /// Returns a handle whose destruction does not end the node.
  [[nodiscard]] static std::shared_ptr<const Node> handle(std::shared_ptr<NodeCore> core);

  /// Returns the host of a callable that is exposed under that name. Throws InvalidArgument for a
  /// moved-from node.
  [[nodiscard]] static std::shared_ptr<Host> host(const Node& node, std::string exposed_as = {},
                                                  std::shared_ptr<AsyncMutex> exclusive = nullptr);
  /// Exposes a function of many signatures. Throws as Node::expose does.
  static void expose(const Node& node, std::shared_ptr<FunctionFamily> family);
  /// Exposes a function of the library's own. To expose it again changes nothing. Throws
  /// InvalidArgument if it is exposed with another signature.
  static void expose_own(const Node& node, std::shared_ptr<ExposedFunction> function);

  /// Returns what the options mean for a call that `core` makes now. A null `core` is allowed.
  [[nodiscard]] static OutgoingOptions outgoing(const CallOptions& options, NodeCore* core);
  /// Sends an encoded call. A null `core` stands for a node that has ended. Throws as Node::call
  /// fails.
  static void submit(NodeCore* core, PeerRef peer, const FunctionKey& function,
                     OutgoingOptions&& options, Encoder& encoder, ReplyHandler&& handler);
  /// Returns the name of the peer. Throws NotFound.
  [[nodiscard]] static std::string name_of(NodeCore& core, PeerRef peer);
};

/// Sends the encoded calls of one peer, for the functions of call/caller.hpp.
struct SubmitTo {
  NodeCore* core;  ///< null: the node has ended
  PeerRef peer;

  void operator()(const FunctionKey& function, OutgoingOptions&& options, Encoder& encoder,
                  ReplyHandler&& handler) const {
    NodeAccess::submit(core, peer, function, std::move(options), encoder, std::move(handler));
  }
};

}  // namespace batchrpc::detail
