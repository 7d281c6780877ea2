#include <algorithm>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "peers/peer_table.hpp"

// How a peer is admitted after its hello. Only the root admits nodes that it does not know. Each
// other node waits until the root introduces them.
namespace batchrpc {
namespace {

std::string denied_text(const std::string& name) {
  return "the node '" + name + "' may not connect (NodeOptions::security.denied)";
}

}  // namespace

void PeerTable::look_at_denied() {
  Ended ended;
  try {
    const std::lock_guard lock(mutex_);
    if (closed_ || !denied_.look()) return;
    for (auto& [name, peer] : peers_) {
      if (!denied_.contains(name) || (peer.sessions.empty() && !peer.current)) continue;
      const std::string why = denied_text(name);
      for (const auto& session : peer.sessions) {
        ended.push_back(
            [session, why] { session->say_goodbye(ErrorCode::permission_denied, why); });
      }
      lose(peer, why, ended);
    }
  } catch (const InvalidArgument& error) {
    log(LogLevel::warning, std::string(error.what()) + "; the list loaded before stays in use");
  }
  run(ended);
}

void PeerTable::address(wire::Hello& hello, std::string_view peer) const {
  const std::lock_guard lock(mutex_);
  const auto at = peers_.find(peer);
  if (at != peers_.end()) hello.receiver = at->second.info.incarnation;
  hello.secret = secret_to(peer);
}

bool PeerTable::is_member(const PeerIdentity& peer) const {
  const std::lock_guard lock(mutex_);
  return find_member(peer.name, peer.incarnation) != nullptr;
}

bool PeerTable::is_root(const PeerIdentity& peer) const {
  const std::lock_guard lock(mutex_);
  const Peer* const member = find_member(peer.name, peer.incarnation);
  return member != nullptr && member->info.rank == 0;
}

bool PeerTable::admit(Session& session, const wire::Hello& hello) {
  Ended ended;
  bool admitted = false;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) throw ShutDown("node " + self_.name + " is shut down");
    if (hello.name == self_.name && hello.incarnation != self_.incarnation) {
      const std::string why = "the name '" + hello.name + "' is taken by the node of rank " +
                              std::to_string(self_.rank) + "; choose another NodeOptions::name";
      const bool joins_here = self_.rank == 0 && session.was_accepted() && hello.joins;
      const bool final =
          !joins_here || environment_.refused(self_.name, environment_.loop->now(), why);
      if (final || options_.world_size == 0) throw JoinFailed(why);
      throw Overloaded(why);  // it asks again
    }
    if (denied_.contains(hello.name)) throw PermissionDenied(denied_text(hello.name));
    const bool is_root = self_.rank == 0;
    if (session.was_accepted()) {
      if (is_root || is_introduced(hello)) {
        check_addressed(hello);
        check_number(hello);
        if (is_root) {
          check_unique(hello);
          check_joins(hello);
        }
        admit_now(session, hello, ended);
        admitted = true;
      } else {
        await_introduction(session, hello);
      }
    } else if (session.joins() || (hello.session != 0 && (is_root || is_introduced(hello)))) {
      admit_now(session, hello, ended);
      admitted = true;
    } else {
      meet_other(session, hello, ended);
    }
  }
  run(ended);
  return admitted;
}

// The caller must hold the lock, here and in all functions below.
const PeerTable::Peer* PeerTable::find_member(std::string_view name,
                                              std::uint64_t incarnation) const {
  const auto at = peers_.find(name);
  const bool is_member = at != peers_.end() && at->second.member;
  return is_member && at->second.info.incarnation == incarnation ? &at->second : nullptr;
}

// Returns the secret by which this node proves itself to the peer of that name. A node that joins
// does not know the root yet, so all roots get the same one, as the peer without a name.
Secret PeerTable::secret_to(std::string_view peer) const {
  const auto at = peers_.find(peer);
  if (peer.empty() || (at != peers_.end() && at->second.member && at->second.info.rank == 0)) {
    return environment_.secret_for("", 0);
  }
  return environment_.secret_for(peer, at != peers_.end() ? at->second.info.incarnation : 0);
}

void PeerTable::admit_now(Session& session, const wire::Hello& hello, Ended& ended) {
  if (!session.was_accepted()) forget_half_open(session);
  auto shared = std::static_pointer_cast<Session>(session.shared_from_this());
  Peer& peer = peers_[hello.name];
  if (peer.info.incarnation != hello.incarnation && peer.info.incarnation != 0) {
    check_succession(peer, hello);
    lose_former(peer, shared, ended);
  } else {
    check_identity(peer, hello);
  }
  const bool is_back = peer.member && peer.lost;
  peer.secret = hello.secret;
  peer.lost = peer.gone = peer.dead = peer.left = false;
  peer.info.name = hello.name;
  if (!peer.member) peer.info.rank = session.was_accepted() ? -1 : hello.rank;  // until it joins
  peer.info.incarnation = hello.incarnation;
  peer.info.state = PeerState::connected;
  end_trial(peer, session);
  peer.tries.since.reset();
  hurry(peer);
  peer.sessions.push_back(shared);
  if (!peer.budget) peer.budget = session.incoming().budget();
  session.incoming().share(*peer.budget);
  // Calls go to members only. A node that joins may change its connection.
  if (!peer.current || !peer.member) peer.current = shared;
  const auto proof = session.connection().proof();
  peer.info.identity = proof ? proof->identity : std::string();
  session.set_peer(
      std::make_shared<const PeerIdentity>(PeerIdentity{.name = hello.name,
                                                        .rank = peer.info.rank,
                                                        .incarnation = hello.incarnation,
                                                        .identity = peer.info.identity}));
  report_connected(session, is_back, hello.name, ended);
  if (session.was_accepted()) end_forgotten(peer, session, ended);
  settle_broken(peer, "the connection broke", ended);
  // Until it has joined, it counts as a connection that has not identified itself.
  if (peer.member) forget_half_open(session);
  if (is_back) {
    ended.push_back([this, info = peer.info] {
      environment_.changed({.kind = PeerChange::Kind::joined, .peer = info, .reason = {}});
    });
  }
}

void PeerTable::forget_half_open(const Session& session) {
  std::erase_if(half_open_, [&](const HalfOpen& entry) { return entry.session.get() == &session; });
}

// Throws unless the hello has the secret of the incarnation that this node knows.
void PeerTable::check_identity(const Peer& peer, const wire::Hello& hello) const {
  const std::optional<Secret> expected =
      hello.name == self_.name ? std::optional(secret_to(hello.name)) : peer.secret;
  if (!expected || *expected == hello.secret) return;
  throw PermissionDenied("a hello in the name of '" + hello.name +
                         "' lacks the secret of that node; if it is another node, choose another "
                         "NodeOptions::name");
}

bool PeerTable::is_introduced(const wire::Hello& hello) const {
  return find_member(hello.name, hello.incarnation) != nullptr;
}

// Throws if the sender means another incarnation of this node, or a session with it.
void PeerTable::check_addressed(const wire::Hello& hello) const {
  if (hello.receiver != 0 && hello.receiver != self_.incarnation) {
    throw Unknown("node " + self_.name + " was restarted since " + hello.name + " knew it");
  }
  if (hello.resumed) {
    throw Unknown("node " + self_.name + " does not know this session anymore");
  }
}

// Throws if the sender has too many connections. An honest node has one, and another one while it
// joins or reconnects.
void PeerTable::check_number(const wire::Hello& hello) const {
  constexpr std::ptrdiff_t kMost = 4;
  const auto at = peers_.find(hello.name);
  if (at == peers_.end() || at->second.info.incarnation != hello.incarnation) return;
  const auto& sessions = at->second.sessions;
  const auto count = std::count_if(sessions.begin(), sessions.end(), [](const auto& session) {
    return session->was_accepted() && session->is_attached();
  });
  if (count < kMost) return;
  throw Overloaded(hello.name + " has " + std::to_string(count) +
                   " connections to this node already; close one of them");
}

// Throws if another node has the incarnation of the hello. It would count as that one.
void PeerTable::check_unique(const wire::Hello& hello) const {
  const auto same = std::find_if(peers_.begin(), peers_.end(), [&](const auto& entry) {
    return entry.second.info.incarnation == hello.incarnation && entry.first != hello.name;
  });
  if (same == peers_.end()) return;
  throw JoinFailed("the incarnation of " + hello.name + " is that of " + same->first +
                   "; each node draws one of its own");
}

// Throws if the sender counts itself as a member, and is none at this root: another node took its
// rank, or its lease has ended. It joins again.
void PeerTable::check_joins(const wire::Hello& hello) const {
  if (hello.joins || is_introduced(hello)) return;
  throw JoinFailed("the root " + self_.name + " no longer counts " + hello.name +
                   " as a member, since it was lost; it must join again");
}

// The root's news of a new member may still be on their way. The hello waits for them.
void PeerTable::await_introduction(const Session& session, const wire::Hello& hello) {
  if (const Peer* const peer = find(hello.name)) check_succession(*peer, hello);
  if (hello.joins) {
    throw JoinFailed(hello.name + " asked to join at " + self_.name +
                     ", which is not the root of its group; join at the root, whose address is " +
                     options_.join + " (NodeOptions::join)");
  }
  const auto waiting = std::find_if(half_open_.begin(), half_open_.end(), [&](const auto& entry) {
    return entry.session.get() == &session;
  });
  if (waiting != half_open_.end()) waiting->hello = hello;
}

// Another incarnation answers at an address of the peer, so the known one is gone, unless another
// connection reaches it. The session tries again until the root has introduced the new one.
void PeerTable::meet_other(Session& session, const wire::Hello& hello, Ended& ended) {
  const auto shared = std::static_pointer_cast<Session>(session.shared_from_this());
  Peer* const peer = find(hello.name);
  if (Trial* const trial = trial_of(peer, shared)) {
    trial->met = hello.incarnation;
    if (!has_connection(*peer) && peer->current == shared &&
        hello.incarnation != peer->info.incarnation) {
      lose_all_but(*peer, shared, ended);
    }
  }
  ended.push_back([shared, name = hello.name] {
    shared->connection().break_off("another node answers as " + name +
                                   ", which the root has not introduced");
  });
}

// Returns the session that goes on to the next incarnation of the peer, which has answered it; null
// if there is none.
std::shared_ptr<Session> PeerTable::successor(const Peer& peer, std::uint64_t incarnation) {
  for (const Trial& trial : peer.trials) {
    if (trial.session == peer.current && trial.met == incarnation) return trial.session;
  }
  return nullptr;
}

// The node is a member from now on: sessions that waited for this continue.
void PeerTable::introduce(const Member& member, Ended& ended) {
  for (const auto& session : peers_[member.name].sessions)
    forget_half_open(*session);
  for (HalfOpen& entry : half_open_) {
    if (!entry.hello || entry.hello->name != member.name ||
        entry.hello->incarnation != member.incarnation) {
      continue;
    }
    ended.push_back([session = entry.session, hello = *std::exchange(entry.hello, std::nullopt)] {
      session->introduced(hello);
    });
  }
}

// Loses the known incarnation. If `successor` is the session for calls, it becomes that of the next
// incarnation, with the calls that wait for it.
void PeerTable::lose_former(Peer& peer, const std::shared_ptr<Session>& successor, Ended& ended) {
  constexpr std::size_t kRemembered = 16;
  peer.former.push_back(peer.info.incarnation);
  if (peer.former.size() > kRemembered) peer.former.erase(peer.former.begin());
  lose_all_but(peer, successor, ended);
  peer.secret.reset();
  peer.member = false;  // not before the group announces it
  peer.info.addresses.clear();
}

// Loses a peer that was restarted. If `kept` is the session for calls, it stays, and goes on trying
// to connect.
void PeerTable::lose_all_but(Peer& peer, const std::shared_ptr<Session>& kept, Ended& ended) {
  if (kept == nullptr || peer.current != kept) return lose(peer, "it was restarted", ended);
  const Trial* const own = trial_of(&peer, kept);
  const std::optional<Trial> trial = own != nullptr ? std::optional(*own) : std::nullopt;
  peer.current = nullptr;
  lose(peer, "it was restarted", ended);
  peer.current = kept;
  if (trial) peer.trials.push_back(*trial);
}

}  // namespace batchrpc
