#include "rref/holders.hpp"

#include <algorithm>

namespace batchrpc::detail {

bool Absence::is_over(UserPresence presence, TimePoint now, const NodeOptions& options) {
  if (presence == UserPresence::there) {
    *this = {};
    return false;
  }
  if (!away_since_) away_since_ = now;
  if (presence == UserPresence::dead && !dead_since_) dead_since_ = now;
  // Handles that a dead node has sent to others may still be arriving there, for as long as a
  // connection may be broken.
  if (dead_since_) return now - *dead_since_ >= options.liveness.dead_after;
  return now - *away_since_ >= std::max(options.liveness.rref_lease, options.liveness.dead_after);
}

bool Hold::has_ended(const ObjectId& object) const {
  if (holder->over) return true;
  if (!holder->listed || list == holder->list) return false;
  const auto& later = holder->not_listed;
  return !later || object.creator != later->creator || object.number < later->number;
}

Holder& Holders::at(const PeerIdentity& user) {
  std::unique_ptr<Holder>& holder = all_[user.incarnation];
  if (!holder) {
    holder = std::make_unique<Holder>();
    holder->name = user.name;
    holder->incarnation = user.incarnation;
  }
  return *holder;
}

Holder* Holders::find(std::uint64_t incarnation) {
  const auto at = all_.find(incarnation);
  return at != all_.end() ? at->second.get() : nullptr;
}

std::vector<PeerIdentity> Holders::identities() const {
  std::vector<PeerIdentity> identities;
  identities.reserve(all_.size());
  for (const auto& [incarnation, holder] : all_) {
    identities.push_back({.name = holder->name, .rank = -1, .incarnation = incarnation});
  }
  return identities;
}

UserPresence Holders::presence_of(LocalNode& node, const PeerIdentity& user) {
  const PeerStanding standing = node.peers().standing(user.name);
  if (standing.incarnation != user.incarnation) {
    return node.peers().is_current(user) ? UserPresence::away : UserPresence::dead;
  }
  if (standing.live) return UserPresence::there;
  return standing.dead ? UserPresence::dead : UserPresence::away;
}

bool Holders::any_ended() const {
  return std::any_of(all_.begin(), all_.end(),
                     [](const auto& entry) { return entry.second->over || entry.second->listed; });
}

bool Holders::any_ended_holds() const {
  return std::any_of(all_.begin(), all_.end(), [](const auto& entry) {
    return (entry.second->over || entry.second->listed) && entry.second->objects > 0;
  });
}

void Holders::forget_ended() {
  std::erase_if(all_, [](const auto& entry) { return entry.second->over; });
  for (const auto& [incarnation, holder] : all_)
    holder->listed = false;
}

}  // namespace batchrpc::detail
