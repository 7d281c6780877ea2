#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "batchrpc/base/result.hpp"
#include "batchrpc/call/call_context.hpp"
#include "batchrpc/call/node_options.hpp"
#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"
#include "batchrpc/transport/loop.hpp"
#include "node/join_pace.hpp"
#include "node/root_address.hpp"
#include "peers/member.hpp"

namespace batchrpc {

class NodeCore;
class Session;

/// The part in a group of a node that is not the root. It joins through the root, and joins again
/// when a lost root is back. Call all functions on the loop, except join() and give_up().
class GroupMembership final : public std::enable_shared_from_this<GroupMembership> {
 public:
  explicit GroupMembership(NodeCore& core);

  /// Finds the root and joins. Ready when the root reports that the world is complete.
  Future<void> join();
  /// Fails join() if it is pending.
  void give_up();

  /// Look for a lost root until it is back.
  /// @{
  void peer_lost(const PeerInfo& peer);
  void peer_joined(const PeerInfo& peer);
  /// @}

 private:
  // Joining, at first and when the node returns: group_membership.cpp.
  void try_root();
  void try_root_at(TimePoint when);
  void root_answered(const std::shared_ptr<Session>& session, const Result<Member>& root);
  void root_did_not_answer(const Session& session, const Result<Member>& root);
  [[nodiscard]] bool may_be_root(const PeerIdentity& peer) const;
  void ask_to_join(const std::shared_ptr<Session>& session);
  void joined(const std::shared_ptr<Session>& session, const Result<JoinReply>& reply);
  void retry(const std::string& why);
  void refused(const std::string& why);
  void fail_to_join(const std::exception_ptr& error);
  [[nodiscard]] bool is_done() const noexcept { return joined_ && !returning_; }

  // Returning: group_return.cpp.
  void root_is_back();
  void return_again();
  void return_after(Duration least, Duration most);
  void try_to_return();
  void refused_return(const std::string& why);
  void choose_another_rank();
  void check_members_later(const PeerIdentity& root, Duration pause);
  void join_again();
  void check_again(const PeerIdentity& root, ErrorCode code, const std::string& why);
  void check_members(const PeerIdentity& root);
  void agree_with(const std::vector<Member>& members);

  NodeCore& core_;
  const std::shared_ptr<Promise<void>> joining_;
  RootAddress address_;
  std::string failure_{};  // why the root was not reached, last; empty: nobody answered
  JoinPace pace_;
  bool joined_ = false;
  std::string root_identity_;  // what the root proved when this node joined last

  bool returning_ = false;           // looks for a lost root
  bool is_forgotten_ = false;        // the root no longer counts this node as a member
  std::uint64_t lost_root_ = 0;      // its incarnation
  std::optional<int> other_rank_{};  // chosen because another node has this node's rank now
  std::string refused_for_;          // the reason of the last refusal that was logged
  TimerId return_timer_ = 0;
};

}  // namespace batchrpc
