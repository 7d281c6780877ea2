#include "rref/holders.hpp"

#include <algorithm>

namespace batchrpc::detail {

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

Holders::State Holders::state_of(NodeCore& core, const PeerIdentity& user) {
  const PeerStanding standing = core.peers().standing(user.name);
  if (standing.incarnation != user.incarnation) {
    return core.peers().is_current(user) ? State::away : State::dead;
  }
  if (standing.live) return State::there;
  return standing.dead ? State::dead : State::away;
}

bool Holders::is_over(Holder& holder, State state, TimePoint now, const NodeOptions& options) {
  if (state == State::there) {
    holder.away_since.reset();
    return false;
  }
  if (!holder.away_since) holder.away_since = now;
  // What the dead have sent to others may still be arriving there, for as long as a connection may
  // be out of order.
  const Duration grace =
      state == State::dead ? options.dead_after : std::max(options.rref_lease, options.dead_after);
  return now - *holder.away_since >= grace;
}

}  // namespace batchrpc::detail
