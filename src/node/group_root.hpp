#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "batchrpc/call/node_options.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"
#include "batchrpc/transport/loop.hpp"
#include "node/group_news.hpp"
#include "node/group_roster.hpp"

namespace batchrpc {

class NodeCore;

/// The root's part of a group: admits nodes, keeps the list of members, and notifies them of
/// changes. Thread-safe.
class GroupRoot final : public std::enable_shared_from_this<GroupRoot> {
 public:
  explicit GroupRoot(NodeCore& core);

  /// Makes the root a member, and begins to gather the others. Ready when all nodes of a fixed
  /// world have joined; at once in an open one. At the time-out it fails with JoinFailed, which
  /// names the missing ranks.
  Future<void> gather();
  /// Fails gather() if it is pending.
  void give_up();

  /// The reserved functions. admit() is answered when the world is complete, and says whether the
  /// member is new; members() returns the present members. On the loop.
  /// @{
  Future<JoinReply> admit(Member member, std::int32_t world_size, bool& is_new);
  [[nodiscard]] std::vector<Member> members() const;
  /// @}

  /// A member is lost, or a lost one is back. On the loop.
  /// @{
  void peer_lost(const PeerInfo& peer, const std::string& reason);
  void peer_joined(const PeerInfo& peer);
  /// @}
  /// A node that joins is refused because the member `holder`, which was heard at `heard_at`, has
  /// its name or rank. Returns whether that is final, since a fixed world cannot become complete
  /// so: gather() then fails with JoinFailed, and so do the nodes that wait. It is final when the
  /// node has asked for three ping intervals, and the holder has answered meanwhile. `newcomer` is
  /// how errors name the node. On the loop; must not take the lock, since the caller may hold that
  /// of the PeerTable.
  bool refused(const std::string& holder, TimePoint heard_at, const std::string& why,
               const std::string& newcomer = "another node");
  /// Called once per ping interval, on the loop.
  void tick();

 private:
  // A node that waits for the world to be complete.
  struct Waiting {
    Member member;
    Promise<JoinReply> promise;
  };

  [[nodiscard]] bool is_gathered() const;
  void finish_if_complete();
  void time_out();
  void fail(const std::exception_ptr& error);
  [[nodiscard]] std::vector<std::string> others_than(const Member& member) const;

  NodeCore& core_;
  const std::shared_ptr<Promise<void>> gathering_;
  GroupNews news_;
  // Repeated requests for the place of one member.
  struct Refusals {
    TimePoint first{};
    TimePoint last{};
  };
  std::map<std::string, Refusals> refused_;  // by the holder; on the loop

  mutable std::mutex mutex_;  // guards the members below
  GroupRoster roster_;
  std::vector<Waiting> waiting_;
  std::atomic<bool> gathered_{false};  // refused() reads it without the lock
  std::exception_ptr failed_{};        // why gather() has failed
  TimerId timer_ = 0;
};

}  // namespace batchrpc
