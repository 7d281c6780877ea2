#include <algorithm>

#include "batchrpc/base/error.hpp"
#include "peers/peer_table.hpp"

// Decides which of several incarnations with one name is the peer.
namespace batchrpc {
namespace {

// After this number of unanswered pings another node may take the name, before the peer counts as
// dead.
constexpr int kSilentTicks = 2;

}  // namespace

// Throws if the node that says hello cannot replace the known incarnation. At nodes other than the
// root, the root has decided about that.
void PeerTable::check_succession(const Peer& peer, const wire::Hello& hello) const {
  if (std::find(peer.former.begin(), peer.former.end(), hello.incarnation) != peer.former.end()) {
    throw JoinFailed("the name '" + hello.name +
                     "' was taken over by another node while this one did not answer; restart it, "
                     "or choose another NodeOptions::name");
  }
  if (self_.rank != 0) return;
  const bool lives = std::any_of(peer.sessions.begin(), peer.sessions.end(), [](const auto& open) {
    return open->is_attached() && open->liveness().silent_ticks() < kSilentTicks;
  });
  if (!lives) return;
  const std::string why = "the name '" + hello.name + "' is taken by a node" +
                          (peer.info.rank < 0 ? "" : " of rank " + std::to_string(peer.info.rank)) +
                          " at " + peer.sessions.front()->connection().description() +
                          "; choose another NodeOptions::name, or stop that node";
  const bool counts = hello.joins && peer.member;
  if (counts && environment_.refused(hello.name, heard_at(peer), why)) throw JoinFailed(why);
  throw Overloaded(why);  // it asks again
}

TimePoint PeerTable::heard_at(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto at = peers_.find(name);
  return at != peers_.end() ? heard_at(at->second) : TimePoint::min();
}

TimePoint PeerTable::heard_at(const Peer& peer) {
  TimePoint latest = TimePoint::min();
  for (const auto& session : peer.sessions) {
    if (session->is_attached()) latest = std::max(latest, session->liveness().heard_at());
  }
  return latest;
}

// Whether an incarnation has introduced itself that the root has not announced yet. News of the
// root come in order, so until then they are about earlier incarnations of that name.
bool PeerTable::is_ahead_of_group(const Peer& peer) { return !peer.member && has_connection(peer); }

bool PeerTable::has_connection(const Peer& peer) {
  return std::any_of(peer.sessions.begin(), peer.sessions.end(),
                     [](const auto& session) { return session->is_attached(); });
}

}  // namespace batchrpc
