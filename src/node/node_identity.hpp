#pragma once

#include <atomic>
#include <cstdint>

#include "batchrpc/call/call_context.hpp"
#include "batchrpc/call/node_options.hpp"
#include "wire/frame.hpp"

namespace batchrpc {

/// Who a node is to its peers: its name, its rank, and the incarnation, a number that a node
/// started again under the same name does not share. Thread-safe.
class NodeIdentity {
 public:
  /// Draws the incarnation. `options` must outlive this.
  explicit NodeIdentity(const NodeOptions& options);

  [[nodiscard]] std::uint64_t incarnation() const noexcept { return incarnation_; }
  /// The rank; -1 until the root has chosen one.
  [[nodiscard]] int rank() const noexcept { return rank_.load(std::memory_order_relaxed); }
  void set_rank(int rank) noexcept { rank_.store(rank, std::memory_order_relaxed); }

  /// Returns the identity as peers see it.
  [[nodiscard]] PeerIdentity as_peer() const;
  /// Returns the frame by which the node introduces itself, without a session.
  [[nodiscard]] wire::Hello hello() const;

 private:
  const NodeOptions& options_;
  const std::uint64_t incarnation_;
  std::atomic<int> rank_;
};

}  // namespace batchrpc
