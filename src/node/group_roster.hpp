#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "peers/member.hpp"

namespace batchrpc {

/// The root's list: the members of its group, and those that it has lost. No two members have one
/// name, and a name is either a member's or that of a lost one. Not thread-safe.
class GroupRoster {
 public:
  [[nodiscard]] const std::vector<Member>& members() const noexcept { return members_; }
  [[nodiscard]] std::vector<Member> lost() const;
  /// The names of all members but those two.
  [[nodiscard]] std::vector<std::string> names_without(const std::string& one,
                                                       const std::string& other) const;

  /// The rank for a node that has chosen none: what it had before, else the lowest that is free.
  [[nodiscard]] std::int32_t rank_for(const std::string& name) const;
  /// The member of another name that has the rank; null: there is none.
  [[nodiscard]] const Member* other_of_rank(std::int32_t rank, const std::string& name) const;

  /// Adds a member, in the place of one of its name, which it replaces.
  void add(const Member& member);
  /// The member is lost, from now on. Nothing: it was no member.
  std::optional<Member> lose(const std::string& name, std::uint64_t incarnation);
  /// The lost one is a member again. Nothing: it was not lost.
  std::optional<Member> restore(const std::string& name, std::uint64_t incarnation);

  /// Whether a world of that size has all its members; one of size 0 always has.
  [[nodiscard]] bool is_complete(std::int32_t world_size) const noexcept;
  /// The ranks that nobody has, such as "ranks 1, 3"; the first 20, and how many more.
  [[nodiscard]] std::string missing_ranks(std::int32_t world_size) const;

 private:
  [[nodiscard]] bool has_rank(std::int32_t rank) const;

  std::vector<Member> members_;
  std::map<std::string, Member> lost_;
};

}  // namespace batchrpc
