#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "batchrpc/future/future.hpp"
#include "batchrpc/future/promise.hpp"
#include "node/quiescence.hpp"
#include "peers/member.hpp"

namespace batchrpc {

class GroupRoot;
class NodeCore;

/// Ends a group when all members are done and no call is under way between any of them
/// (docs/decisions/0039). A member notifies the root that it is done. When all are, the root asks
/// them in rounds: each member answers when it is quiet, with the number of calls that it has made.
/// If the answers of two rounds in a row are equal, nothing has run in between, and the root ends
/// the group. Thread-safe.
class GroupEnd final : public std::enable_shared_from_this<GroupEnd> {
 public:
  /// `root` has the list of members, on the root.
  GroupEnd(NodeCore& core, std::shared_ptr<GroupRoot> root);

  /// This node is done. Ready when the group ends: with an empty text, or the reason why this node
  /// does not wait for the others any longer.
  Future<std::string> done();
  /// Returns what the group waits for; for people.
  [[nodiscard]] std::string missing() const;

  /// The reserved functions. The root gets the first two, the members the others.
  /// @{
  void member_is_done(std::uint64_t member);
  void member_is_quiet(std::uint64_t member, std::uint64_t round, std::uint64_t calls);
  void report_quiet(std::uint64_t round);
  void end() { finish({}); }
  /// @}
  /// Ends the wait of done(), if it still waits. `why` is empty if the group has ended.
  void finish(const std::string& why);

  /// A node has joined or is lost.
  void members_changed();
  /// The node that the root was is lost.
  void root_lost(const std::string& name, const std::string& reason);
  /// Repeats messages that may have been lost with a connection. Called once per ping interval.
  void tick();

 private:
  using Calls = std::map<std::uint64_t, std::uint64_t>;  // by incarnation

  [[nodiscard]] bool is_root() const;
  void advance();
  void ask(const std::vector<std::string>& names, std::uint64_t round);
  void send_done();

  NodeCore& core_;
  const std::shared_ptr<GroupRoot> root_;
  const std::shared_ptr<Quiescence> quiescence_;
  std::uint64_t reports_for_ = 0;  // the round to which this node will answer; used on the loop

  mutable std::mutex mutex_;                    // guards what follows
  std::shared_ptr<Promise<std::string>> over_;  // null until this node is done
  bool finished_ = false;

  // The root uses these:
  bool is_over_ = false;          // the others have been told that the group ends
  std::set<std::uint64_t> done_;  // incarnations
  std::vector<Member> asked_;     // the members of the present round; empty: there is none
  std::uint64_t round_ = 0;
  Calls answers_;
  Calls former_;  // the answers of the round before
};

}  // namespace batchrpc
