#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"
#include "peers/member.hpp"
#include "peers/peer_table.hpp"

namespace batchrpc {

class NodeCore;

/// How the nodes of a group find each other: through the root, which keeps the list, by reserved
/// remote functions (docs/wire.md). Thread-safe.
class Group final : public std::enable_shared_from_this<Group> {
 public:
  explicit Group(NodeCore& core);

  /// Exposes the reserved functions.
  void start();

  /// The root's: ready when all of a fixed world have joined, at once in an open one. Fails with
  /// JoinFailed that names the ranks missing at the time-out.
  Future<void> gather();

  /// Everyone else's: finds the root, and is ready when the root says that the world is complete.
  Future<void> join();

  /// Neither comes to an end by itself any more.
  void give_up();

  /// The root tells the others of a loss. The others look for a root that is lost.
  void peer_lost(const PeerInfo& peer, const std::string& reason);
  /// And of the return of one that was only cut off.
  void peer_joined(const PeerInfo& peer);
  /// The root tells whom its news may not have reached again. On the loop, at every ping interval.
  void tick();

 private:
  struct Waiting {
    Member member;
    Promise<JoinReply> promise;
  };

  Future<JoinReply> admit(Member member, std::int32_t world_size);
  std::int32_t free_rank() const;
  bool complete() const;
  void finish_if_complete();
  void time_out();
  [[nodiscard]] std::string missing_ranks() const;

  void try_root();
  void try_root_at(TimePoint when);
  void root_answered(const std::shared_ptr<Session>& session, Result<Member> root);
  void joined(const std::shared_ptr<Session>& session, Result<JoinReply> reply);
  void retry(const std::string& why);
  void refused(const std::string& why);
  void fail_to_join(const std::exception_ptr& error);

  void root_lost(std::uint64_t incarnation);
  void root_is_back();
  void return_again();
  void return_after(Duration at_least, Duration at_most);
  void try_to_return();
  void refused_return(const std::string& why);
  void choose_another_rank();
  void check_members_later(std::shared_ptr<const PeerIdentity> root);
  void check_members(const PeerIdentity& root);
  void agree_with(const std::vector<Member>& members);
  [[nodiscard]] std::vector<Member> members() const;
  void notify_all(const std::string& name, const std::vector<Member>& members,
                  const std::vector<Member>& lost);
  void notify_others(const Member& about, bool joined, const std::string& reason);
  void notify(const std::string& name, const Member& about, bool joined, const std::string& reason);

  NodeCore& core_;

  mutable std::mutex mutex_;
  std::vector<Member> members_;   // the root's list
  std::vector<Waiting> waiting_;  // for the world to be complete
  std::map<std::string, Member> lost_;
  bool gathered_ = false;
  std::shared_ptr<Promise<void>> done_;
  TimerId timer_ = 0;

  TimePoint give_up_at_{};
  int tries_ = 0;
  std::mt19937_64 random_;
  std::optional<TimePoint> refused_since_;
  std::string tried_;      // the address that was tried last
  std::string warned_of_;  // where no batchrpc node answered
  int nearer_tries_ = 0;
  std::string nearer_;  // a better way to the root, when that is to be used

  // Of who has joined, on the loop.
  bool joined_ = false;
  bool returning_ = false;         // looks for a root that was lost
  std::uint64_t lost_root_ = 0;    // the incarnation of that
  std::optional<int> other_rank_;  // the root has chosen this node's for another meanwhile
  std::string refused_for_;        // why it could not return, when that was logged last
  TimerId return_timer_ = 0;

  // The root's, on the loop: by incarnation, how many sessions had ended when a member was told
  // all.
  std::map<std::uint64_t, std::uint64_t> told_;
};

}  // namespace batchrpc
