#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "peers/member.hpp"

namespace batchrpc {

/// The root's list of members and lost members. No two members have one name, and no member has the
/// name of a lost one. Not thread-safe.
class GroupRoster {
 public:
  [[nodiscard]] const std::vector<Member>& members() const noexcept { return members_; }
  [[nodiscard]] std::vector<Member> lost() const;
  /// Returns the names of all members except these two.
  [[nodiscard]] std::vector<std::string> names_without(const std::string& one,
                                                       const std::string& other) const;

  /// Returns the member of this name and incarnation; null if there is none.
  [[nodiscard]] const Member* find(const std::string& name, std::uint64_t incarnation) const;
  /// Returns the rank for a node that has chosen none: its previous rank, else the lowest free one.
  [[nodiscard]] std::int32_t rank_for(const std::string& name) const;
  /// Returns the member of another name that has the rank; null if there is none.
  [[nodiscard]] const Member* other_of_rank(std::int32_t rank, const std::string& name) const;

  /// Adds a member. It replaces one of the same name.
  void add(const Member& member);
  /// Makes the member a lost one. Empty if it was no member.
  std::optional<Member> lose(const std::string& name, std::uint64_t incarnation);
  /// Makes the lost node a member again. Empty if it was not lost, or if another member has its
  /// rank: then it must join again.
  std::optional<Member> restore(const std::string& name, std::uint64_t incarnation);

  /// Returns the lost nodes that had this rank, each once. From now on they become members again
  /// only by a join.
  [[nodiscard]] std::vector<Member> take_lost_of_rank(std::int32_t rank);
  /// Forgets the lost nodes for which `is_forgotten(name)` is true.
  template <class Predicate>
  void forget_lost(Predicate is_forgotten) {
    std::erase_if(lost_, [&](const auto& entry) { return is_forgotten(entry.first); });
  }

  /// Whether a world of that size has all its members; one of size 0 always has.
  [[nodiscard]] bool is_complete(std::int32_t world_size) const noexcept;
  /// Returns the ranks that no member has, such as "ranks 1, 3": the first 20, and how many more.
  [[nodiscard]] std::string missing_ranks(std::int32_t world_size) const;

 private:
  [[nodiscard]] bool has_rank(std::int32_t rank) const;

  std::vector<Member> members_;
  struct Lost {
    Member member;
    bool replaced = false;  // another node has its rank
  };
  std::map<std::string, Lost> lost_;
};

}  // namespace batchrpc
