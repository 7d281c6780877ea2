#include "node/group_roster.hpp"

#include <algorithm>
#include <utility>

namespace batchrpc {

std::vector<Member> GroupRoster::lost() const {
  std::vector<Member> lost;
  for (const auto& [name, entry] : lost_)
    lost.push_back(entry.member);
  return lost;
}

std::vector<std::string> GroupRoster::names_without(const std::string& one,
                                                    const std::string& other) const {
  std::vector<std::string> names;
  for (const Member& member : members_) {
    if (member.name != one && member.name != other) names.push_back(member.name);
  }
  return names;
}

bool GroupRoster::has_rank(std::int32_t rank) const {
  return std::any_of(members_.begin(), members_.end(),
                     [&](const Member& member) { return member.rank == rank; });
}

const Member* GroupRoster::find(const std::string& name, std::uint64_t incarnation) const {
  for (const Member& member : members_) {
    if (member.name == name && member.incarnation == incarnation) return &member;
  }
  return nullptr;
}

std::int32_t GroupRoster::rank_for(const std::string& name) const {
  for (const Member& member : members_) {
    if (member.name == name) return member.rank;
  }
  std::int32_t rank = 0;
  while (has_rank(rank))
    ++rank;
  return rank;
}

const Member* GroupRoster::other_of_rank(std::int32_t rank, const std::string& name) const {
  for (const Member& member : members_) {
    if (member.rank == rank && member.name != name) return &member;
  }
  return nullptr;
}

void GroupRoster::add(const Member& member) {
  std::erase_if(members_, [&](const Member& known) { return known.name == member.name; });
  members_.push_back(member);
  lost_.erase(member.name);
}

std::optional<Member> GroupRoster::lose(const std::string& name, std::uint64_t incarnation) {
  const auto at = std::find_if(members_.begin(), members_.end(), [&](const Member& member) {
    return member.name == name && member.incarnation == incarnation;
  });
  if (at == members_.end()) return std::nullopt;
  Member member = std::move(*at);
  members_.erase(at);
  lost_.insert_or_assign(name, Lost{.member = member});
  return member;
}

std::optional<Member> GroupRoster::restore(const std::string& name, std::uint64_t incarnation) {
  const auto at = lost_.find(name);
  if (at == lost_.end() || at->second.member.incarnation != incarnation) return std::nullopt;
  if (at->second.replaced || has_rank(at->second.member.rank)) return std::nullopt;
  Member member = std::move(at->second.member);
  lost_.erase(at);
  members_.push_back(member);
  return member;
}

std::vector<Member> GroupRoster::take_lost_of_rank(std::int32_t rank) {
  std::vector<Member> lost;
  for (auto& [name, entry] : lost_) {
    if (entry.member.rank == rank && !std::exchange(entry.replaced, true))
      lost.push_back(entry.member);
  }
  return lost;
}

bool GroupRoster::is_complete(std::int32_t world_size) const noexcept {
  return world_size == 0 || members_.size() == static_cast<std::size_t>(world_size);
}

std::string GroupRoster::missing_ranks(std::int32_t world_size) const {
  std::string ranks;
  int missing = 0;
  for (std::int32_t rank = 0; rank < world_size; ++rank) {
    if (has_rank(rank)) continue;
    ++missing;
    if (missing <= 20) ranks += (missing == 1 ? "" : ", ") + std::to_string(rank);
  }
  if (missing > 20) ranks += " and " + std::to_string(missing - 20) + " more";
  return (missing == 1 ? "rank " : "ranks ") + ranks;
}

}  // namespace batchrpc
