#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "batchrpc/future/future.hpp"
#include "peers/member.hpp"
#include "peers/peer_table.hpp"

namespace batchrpc {

class GroupMembership;
class GroupRoot;
class NodeCore;

/// A node's part in its group. The nodes find each other through the root, which keeps the list of
/// members, by reserved remote functions (docs/wire.md). Thread-safe.
class Group final : public std::enable_shared_from_this<Group> {
 public:
  explicit Group(NodeCore& core);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  /// Exposes the reserved functions.
  void start();

  /// For the root: GroupRoot::gather().
  Future<void> gather();
  /// For the others: GroupMembership::join().
  Future<void> join();

  /// Fails gather() or join() if it is still pending; neither ends by itself from now on.
  void give_up();

  /// The root notifies the others of a lost peer. The others look for a root that is lost.
  void peer_lost(const PeerInfo& peer, const std::string& reason);
  /// The same for a peer that comes back, as it was only cut off.
  void peer_joined(const PeerInfo& peer);
  /// The root repeats news that a member may have missed. On the loop, at every ping interval.
  void tick();

 private:
  [[nodiscard]] bool is_root() const;
  // A node asks to join here. Throws JoinFailed unless this is the root.
  Future<JoinReply> admit(Member member, std::int32_t world_size);

  NodeCore& core_;
  const std::shared_ptr<GroupRoot> root_;
  const std::shared_ptr<GroupMembership> membership_;
};

}  // namespace batchrpc
