#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "batchrpc/future/future.hpp"
#include "peers/member.hpp"
#include "peers/peer_table.hpp"

namespace batchrpc {

class GroupEnd;
class GroupMembership;
class GroupRoot;
class NodeCore;

/// A node's part in its group. The root keeps the list of members, and the nodes find each other
/// through it, by reserved remote functions (docs/wire.md). Thread-safe.
class Group final : public std::enable_shared_from_this<Group> {
 public:
  explicit Group(NodeCore& core);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  /// Exposes the reserved functions.
  void start();

  /// Calls GroupRoot::gather(), on the root.
  Future<void> gather();
  /// Calls GroupMembership::join(), on any other node.
  Future<void> join();

  /// How the members end together.
  [[nodiscard]] GroupEnd& end() noexcept { return *end_; }

  /// Fails gather() or join() if it is still pending.
  void give_up();

  /// The root notifies the other members of a lost peer. The others look for a lost root.
  void peer_lost(const PeerInfo& peer, const std::string& reason);
  /// The same for a lost peer that returns because it was only cut off.
  void peer_joined(const PeerInfo& peer);
  /// See GroupRoot::refused().
  bool refused(const std::string& holder, TimePoint heard_at, const std::string& why);
  /// Repeats messages that another node may have missed. Called once per ping interval, on the
  /// loop.
  void tick();

 private:
  [[nodiscard]] bool is_root() const;
  // A node asks to join here. Throws JoinFailed unless this is the root.
  Future<JoinReply> admit(Member member, std::int32_t world_size);

  NodeCore& core_;
  const std::shared_ptr<GroupRoot> root_;
  const std::shared_ptr<GroupMembership> membership_;
  const std::shared_ptr<GroupEnd> end_;
};

}  // namespace batchrpc
