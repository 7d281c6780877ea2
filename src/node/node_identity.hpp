#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/secret.hpp"
#include "batchrpc/call/call_context.hpp"
#include "batchrpc/call/node_options.hpp"
#include "wire/frame.hpp"

namespace batchrpc {

class RandomBits;

/// Who a node is to its peers: its name, its rank, and the incarnation, a number that a node
/// started again under the same name does not share. The group knows all three. A secret for each
/// peer proves that a hello comes from this node. Thread-safe.
class NodeIdentity {
 public:
  /// Draws the incarnation and the key of the secrets. `options` must outlive this.
  explicit NodeIdentity(const NodeOptions& options);

  [[nodiscard]] std::uint64_t incarnation() const noexcept { return incarnation_; }
  /// The rank; -1 until the root has chosen one.
  [[nodiscard]] int rank() const noexcept { return rank_.load(std::memory_order_relaxed); }
  void set_rank(int rank) noexcept { rank_.store(rank, std::memory_order_relaxed); }

  /// Returns the secret by which the node proves its identity to that incarnation of the peer, and
  /// to no other node.
  [[nodiscard]] Secret secret_for(std::string_view peer, std::uint64_t incarnation) const;
  /// Returns a number that makes the node's addresses unique. Other users of the host can read it
  /// there, and must not learn the incarnation from it.
  [[nodiscard]] std::uint64_t number_for_addresses() const noexcept;

  /// Returns the identity as peers see it.
  [[nodiscard]] PeerIdentity as_peer() const;
  /// Returns the frame by which the node introduces itself, without a session.
  [[nodiscard]] wire::Hello hello() const;

 private:
  NodeIdentity(const NodeOptions& options, RandomBits random);

  const NodeOptions& options_;
  const std::uint64_t incarnation_;
  const Secret key_;
  std::atomic<int> rank_;
};

}  // namespace batchrpc
