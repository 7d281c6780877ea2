#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "peers/member.hpp"

namespace batchrpc {

class NodeCore;

/// How the root notifies the members of who joins and leaves. A notification may be lost with the
/// session that carried it; then it repeats all that there is to know. On the loop alone.
class GroupNews {
 public:
  explicit GroupNews(NodeCore& core) : core_(core) {}

  /// Notifies the nodes of these names.
  /// @{
  void joined(const Member& member, const std::vector<std::string>& names) const;
  void left(const Member& member, const std::string& reason,
            const std::vector<std::string>& names) const;
  /// @}

  /// A member has just got the whole list, or gets it now.
  /// @{
  void is_up_to_date(const Member& member);
  void bring_up_to_date(const Member& member, const std::vector<Member>& members,
                        const std::vector<Member>& lost);
  /// @}

  /// Repeats everything to the members whose session has ended since they were notified last.
  void tick(const std::vector<Member>& members, const std::vector<Member>& lost);

 private:
  void notify_of_all(const std::string& name, const std::vector<Member>& members,
                     const std::vector<Member>& lost) const;
  void notify_joined(const std::string& name, const Member& about) const;
  void notify_left(const std::string& name, const Member& about, const std::string& reason) const;

  NodeCore& core_;
  // By incarnation: how many sessions with the member had ended when it was up to date.
  std::map<std::uint64_t, std::uint64_t> sessions_ended_;
};

}  // namespace batchrpc
