#include <algorithm>

#include "batchrpc/base/error.hpp"
#include "peers/peer_table.hpp"

// One name, several incarnations: which of them is the peer.
namespace batchrpc {
namespace {

// A peer that has not answered so many pings lets another take its name, before it counts as dead.
constexpr int kSilentTicks = 2;

}  // namespace

// Throws where the node that says hello cannot take the place of the incarnation that is known.
void PeerTable::check_succession(const Peer& peer, const wire::Hello& hello) const {
  if (std::find(peer.former.begin(), peer.former.end(), hello.incarnation) != peer.former.end()) {
    throw JoinFailed("the name '" + hello.name +
                     "' was taken over by another node while this one did not answer; start it "
                     "anew, or choose another NodeOptions::name");
  }
  if (self_.rank != 0) return;  // the root has let it in, or it would not know of this node
  const bool lives = std::any_of(peer.sessions.begin(), peer.sessions.end(), [](const auto& open) {
    return open->is_attached() && open->liveness().silent_ticks() < kSilentTicks;
  });
  if (!lives) return;
  throw Overloaded("the name '" + hello.name + "' is taken by a node" +
                   (peer.info.rank < 0 ? "" : " of rank " + std::to_string(peer.info.rank)) +
                   " at " + peer.sessions.front()->connection().description() +
                   "; choose another NodeOptions::name, or stop that node");
}

// Whether an incarnation has introduced itself that the root has yet to announce. The root's news
// come in order, so until then they speak of earlier incarnations of that name.
bool PeerTable::is_ahead_of_group(const Peer& peer) {
  return !peer.member && std::any_of(peer.sessions.begin(), peer.sessions.end(),
                                     [](const auto& session) { return session->is_attached(); });
}

}  // namespace batchrpc
