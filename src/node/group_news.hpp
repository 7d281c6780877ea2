#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "peers/member.hpp"

namespace batchrpc {

class NodeCore;

/// Notifies the members of the nodes that join and leave. A notification may be lost with the
/// session that carried it, so the root then repeats all of its news. Used by the root, on the
/// loop.
class GroupNews {
 public:
  explicit GroupNews(NodeCore& core) : core_(core) {}

  /// Notify the nodes of these names.
  /// @{
  void joined(const Member& member, const std::vector<std::string>& names);
  void left(const Member& member, const std::string& reason, const std::vector<std::string>& names);
  /// @}

  /// A member has just received the whole list, or receives it now.
  /// @{
  void is_up_to_date(const Member& member);
  void bring_up_to_date(const Member& member, const std::vector<Member>& members,
                        const std::vector<Member>& lost);
  /// @}

  /// Repeats all news to the members whose session has ended since they were last notified, and to
  /// those that did not take their messages then, and do now.
  void tick(const std::vector<Member>& members, const std::vector<Member>& lost);

 private:
  [[nodiscard]] bool takes_news(const std::string& name);
  void notify_of_all(const std::string& name, const std::vector<Member>& members,
                     const std::vector<Member>& lost) const;
  void notify_joined(const std::string& name, const Member& about) const;
  void notify_left(const std::string& name, const Member& about, const std::string& reason) const;

  NodeCore& core_;
  // By incarnation: the number of sessions with the member that had ended when it was up to date.
  std::map<std::uint64_t, std::uint64_t> sessions_ended_;
  std::set<std::string> behind_;  // the names of members that may lack news
};

}  // namespace batchrpc
