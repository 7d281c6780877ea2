#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "batchrpc/base/export.hpp"
#include "batchrpc/call/node_options.hpp"

namespace batchrpc {

class NodeCore;

/// A change of the group: a node has joined, or was lost.
struct MembershipChange {
  bool joined = false;   ///< false: lost
  PeerInfo peer{};       ///< the node, as it is now
  std::string reason{};  ///< why it was lost
};

/// A handler that was given to Node::on_membership. Dropping this does not remove the handler.
class BATCHRPC_EXPORT MembershipSubscription {
 public:
  /// Refers to no handler.
  MembershipSubscription() = default;

  /// Removes the handler. One that another thread is running may continue after this has returned,
  /// so let it share what it refers to. The second time it does nothing. Thread-safe, also in the
  /// handler and after the node's end.
  void cancel() const;

 private:
  friend class Node;
  MembershipSubscription(std::weak_ptr<NodeCore> core, std::uint64_t number)
      : core_(std::move(core)), number_(number) {}

  std::weak_ptr<NodeCore> core_{};
  std::uint64_t number_ = 0;
};

}  // namespace batchrpc
