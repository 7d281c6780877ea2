#include "peers/peer_table.hpp"

#include <algorithm>

#include "base/per_thread.hpp"
#include "batchrpc/base/error.hpp"
#include "call/function_table.hpp"

namespace batchrpc {
namespace {

OutgoingCalls::MakeError peer_lost(const std::string& name, const std::string& why) {
  return [name, why](const std::string& function, bool sent) -> std::exception_ptr {
    if (sent) {
      return std::make_exception_ptr(
          PeerLost(name + " is lost (" + why + "): '" + function + "' may have run there"));
    }
    if (function == OutgoingCalls::kCreditWait) {
      return std::make_exception_ptr(
          NotSent("the wait for credit has ended, because " + name + " is lost (" + why + ")"));
    }
    return std::make_exception_ptr(
        NotSent(name + " is lost (" + why + "): '" + function +
                "' was not sent; call another node, or call again when it is back"));
  };
}

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> numbers{0};
  return ++numbers;
}

}  // namespace

PeerTable::PeerTable(Environment environment, const NodeOptions& options, PeerIdentity self)
    : environment_(std::move(environment)),
      options_(options),
      self_(std::move(self)),
      number_(next_number()),
      session_ids_(options_.simulation.seed != 0 ? ~self_.incarnation : 0),
      random_(self_.incarnation),
      denied_(options_.security.denied) {}

PeerTable::~PeerTable() = default;

void PeerTable::run(Ended& ended) {
  for (const auto& action : ended)
    action();
}

PeerTable::Peer* PeerTable::find(std::string_view name) {
  const auto at = peers_.find(name);
  return at != peers_.end() ? &at->second : nullptr;
}

bool PeerTable::add(const Member& member, std::vector<std::string> addresses) {
  Ended ended;
  bool is_new = false;
  {
    const std::lock_guard lock(mutex_);
    Peer& peer = peers_[member.name];
    const bool other = peer.info.incarnation != member.incarnation;
    if (other && peer.info.incarnation != 0) {
      if (is_ahead_of_group(peer)) return false;
      lose_former(peer, successor(peer, member.incarnation), ended);
    }
    is_new = !peer.member || other || peer.lost;
    if (is_new) peer.tries.failed = 0;
    const PeerState state =
        is_new && !(peer.current && peer.current->is_open()) ? PeerState::known : peer.info.state;
    peer.member = true;
    peer.known = true;
    peer.lost = peer.gone = peer.dead = peer.left = false;
    peer.info.name = member.name;
    peer.info.rank = member.rank;
    peer.info.incarnation = member.incarnation;
    peer.info.state = state;
    peer.info.addresses = std::move(addresses);
    if (is_new) hurry(peer);
    for (const auto& session : peer.sessions) {
      if (session->peer()->rank == member.rank) continue;  // else its hello came before the rank
      PeerIdentity known = *session->peer();
      known.rank = member.rank;
      session->set_peer(std::make_shared<const PeerIdentity>(std::move(known)));
    }
    if (is_new) {
      ended.push_back([this, info = peer.info] {
        environment_.changed({.kind = PeerChange::Kind::joined, .peer = info, .reason = {}});
      });
    }
    introduce(member, ended);
  }
  run(ended);
  return is_new;
}

void PeerTable::remove(const std::string& name, std::uint64_t incarnation,
                       const std::string& reason) {
  Ended ended;
  {
    const std::lock_guard lock(mutex_);
    Peer* peer = find(name);
    if (peer == nullptr || peer->info.incarnation != incarnation) return;
    peer->gone = true;
    if (!peer->sessions.empty() || peer->info.state == PeerState::lost) return;
    lose(*peer, reason, ended, LogLevel::info);
  }
  run(ended);
}

void PeerTable::exclude(std::string_view name, std::uint64_t incarnation) {
  Ended ended;
  {
    const std::lock_guard lock(mutex_);
    Peer* const peer = find(name);
    if (peer == nullptr || peer->info.incarnation != incarnation) return;
    if (!peer->member && peer->info.state == PeerState::lost) return;
    lose(*peer, "another node has taken its rank", ended);  // ends what tries to reach it
    peer->member = false;
  }
  run(ended);
}

std::shared_ptr<Session> PeerTable::make_session(const std::string& expected_name,
                                                 std::uint64_t id) {
  return std::make_shared<Session>(environment_.host(), environment_.loop, environment_.context,
                                   expected_name, id);
}

// Each thread remembers the peer that it called last.
std::shared_ptr<Session> PeerTable::session(std::string_view name) {
  struct Last {
    std::uint64_t table = 0;
    std::uint64_t changes = 0;
    std::string peer{};
    std::weak_ptr<Session> session{};
  };
  Last& last = detail::per_thread<Last>();
  const std::uint64_t changes = sessions_changed_.load(std::memory_order_acquire);
  if (last.table == number_ && last.changes == changes && last.peer == name) {
    if (auto session = last.session.lock()) return session;
  }
  auto session = find_session(name);
  last = {.table = number_, .changes = changes, .peer = std::string(name), .session = session};
  return session;
}

std::shared_ptr<Session> PeerTable::find_session(std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (closed_) throw ShutDown("node " + self_.name + " is shut down; make a new one");
  const auto at = peers_.find(name);
  if (at == peers_.end() || !at->second.known) {
    std::vector<std::string> names;
    for (const auto& [known, peer] : peers_) {
      if (peer.known && known != self_.name) names.push_back(known);
    }
    const std::string near = suggest(name, names);
    throw NotFound("no peer '" + std::string(name) + "' is known to " + self_.name + "; " + near +
                   (near.empty() ? "" : " ") + "wait_for_peer() waits until it has joined");
  }
  Peer& peer = at->second;
  if (!peer.member) {
    throw NotSent(std::string(name) +
                  " was restarted or lost its rank, and has not joined again yet; call again");
  }
  return peer.current ? peer.current : begin_connecting(peer);
}

void PeerTable::set_own_rank(int rank) {
  const std::lock_guard lock(mutex_);
  self_.rank = rank;
  if (Peer* self = find(self_.name)) self->info.rank = rank;
}

std::string PeerTable::name_of(int rank) const {
  const std::lock_guard lock(mutex_);
  const std::string* lost = nullptr;
  for (const auto& [name, peer] : peers_) {
    if (peer.info.rank != rank || rank < 0 || !peer.member) continue;
    if (!peer.lost) return name;
    lost = &name;
  }
  if (lost != nullptr) return *lost;
  throw NotFound("no peer of rank " + std::to_string(rank) + " is known to " + self_.name +
                 "; no peer with this rank has joined its group yet");
}

// --- sessions end

void PeerTable::session_closed(const std::shared_ptr<Session>& session, const std::string& why) {
  Ended ended;
  {
    const std::lock_guard lock(mutex_);
    forget_half_open(*session);
    if (closed_) return;
    Peer* const found = peer_of(session);
    if (found == nullptr) {  // never admitted, and no call waits for its peer by name
      end_unowned(session, why, ended);
      report_refused(*session, ended);
    } else {
      Peer& peer = *found;
      leave_out(peer, session);
      if (session->goodbye()) {
        if (peer.sessions.empty()) {
          const bool has_left =
              session->goodbye()->code == static_cast<std::uint16_t>(ErrorCode::shut_down);
          peer.gone = peer.dead = peer.left = has_left;
          lose(peer, session->goodbye()->reason, ended,
               has_left ? LogLevel::info : LogLevel::warning,
               has_left ? Guarantee::shutdown : Guarantee::dead_peer);
        } else {
          settle_broken(peer, why, ended);
        }
      } else if (!peer.sessions.empty()) {
        settle_soon(peer, why);
      } else if (!peer.current) {
        if (!session->has_made_progress()) put_off(peer);
        begin_connecting(peer);
        ended.push_back([this, name = peer.info.name, why] {
          report_on(name, LogLevel::info,
                    "the session with " + name + " ended (" + why + "); a new one begins");
        });
      }
      drop_unidentified(std::string(peer.info.name));
    }
  }
  session->outgoing().close();
  run(ended);
}

// Ends the calls of a session that belongs to no peer.
void PeerTable::end_unowned(const std::shared_ptr<Session>& session, const std::string& why,
                            Ended& ended) {
  ended.push_back([session, why] {
    const auto error = [&why](const std::string& /*function*/, bool sent) {
      return sent ? std::make_exception_ptr(PeerLost(why)) : std::make_exception_ptr(NotSent(why));
    };
    session->outgoing().fail_all(error, Guarantee::dead_peer);
    session->close();
  });
}

PeerTable::Peer* PeerTable::peer_of(const std::shared_ptr<Session>& session) {
  const auto has_it = [&](const Peer& peer) {
    return peer.current == session ||
           std::find(peer.sessions.begin(), peer.sessions.end(), session) != peer.sessions.end();
  };
  const auto identity = session->peer();
  Peer* const named = identity ? find(identity->name) : nullptr;
  if (named != nullptr && has_it(*named)) return named;
  for (auto& [name, peer] : peers_) {
    if (has_it(peer)) return &peer;
  }
  return nullptr;
}

// A session has ended. Its calls wait for their outcome.
void PeerTable::leave_out(Peer& peer, const std::shared_ptr<Session>& session) {
  end_trial(peer, *session);
  std::erase(peer.sessions, session);
  if (peer.current == session) {
    peer.current = peer.sessions.empty() ? nullptr : peer.sessions.front();
    ++sessions_changed_;
  }
  peer.broken.push_back(session);
}

// Another connection exists, but it may have ended as well, unnoticed so far.
void PeerTable::settle_soon(const Peer& peer, const std::string& why) {
  constexpr auto kSoon = std::chrono::milliseconds(100);
  environment_.loop->schedule(
      environment_.loop->now() + kSoon,
      [this, weak = std::weak_ptr(environment_.host()), name = peer.info.name, why] {
        const auto host = weak.lock();
        if (!host) return;
        Ended ended;
        {
          const std::lock_guard lock(mutex_);
          Peer* const found = find(name);
          if (found != nullptr && !found->sessions.empty()) settle_broken(*found, why, ended);
        }
        run(ended);
      });
}

// A peer that begins a new session has forgotten those that it made before and that wait for it.
void PeerTable::end_forgotten(Peer& peer, const Session& begun, Ended& ended) {
  const auto sessions = peer.sessions;
  for (const auto& session : sessions) {
    if (session.get() == &begun || session->is_attached() || !session->was_accepted()) continue;
    leave_out(peer, session);
    ended.push_back([session] { session->close(); });
  }
}

// Ends the calls of broken sessions. The counts are complete once `ended` has run.
std::shared_ptr<OutgoingCalls::Failed> PeerTable::end_broken(Peer& peer,
                                                             const OutgoingCalls::MakeError& error,
                                                             Guarantee guarantee, Ended& ended) {
  std::erase_if(departed_, [](const auto& entry) {
    const auto session = entry.second.lock();
    return !session || session->incoming().answering() == 0;
  });
  auto failed = std::make_shared<OutgoingCalls::Failed>();
  peer.sessions_ended += peer.broken.size();
  for (auto& session : std::exchange(peer.broken, {})) {
    add_up(peer.info, *session);
    departed_.emplace_back(peer.info.name, session);  // it may still run notifications
    ended.push_back([session, error, guarantee, failed] {
      const OutgoingCalls::Failed of_session = session->outgoing().fail_all(error, guarantee);
      failed->left += of_session.left;
      failed->not_sent += of_session.not_sent;
    });
  }
  return failed;
}

// Ends the calls of sessions that a living peer has forgotten.
void PeerTable::settle_broken(Peer& peer, const std::string& why, Ended& ended) {
  if (peer.broken.empty()) return;
  const auto error = [name = peer.info.name, why](const std::string& function, bool sent) {
    if (function == OutgoingCalls::kCreditWait) {
      return std::make_exception_ptr(
          NotSent("the wait for credit has ended, because the connection to " + name + " broke (" +
                  why + "); ask again"));
    }
    return sent ? std::make_exception_ptr(
                      Unknown("the connection to " + name + " broke (" + why + ") while '" +
                              function + "' was in flight; it is not known whether it ran"))
                : std::make_exception_ptr(NotSent("the connection to " + name + " broke (" + why +
                                                  ") before '" + function +
                                                  "' was sent; call again"));
  };
  const auto failed = end_broken(peer, error, Guarantee::at_most_once, ended);
  report_forgotten(peer.info.name, why, failed, ended);
}

// Forgets a peer that is gone if neither it nor an earlier incarnation was a member. The root has
// refused it, for example.
void PeerTable::drop_unidentified(std::string_view name) {
  const auto at = peers_.find(name);
  if (at != peers_.end() && !at->second.known && at->second.info.state == PeerState::lost) {
    peers_.erase(at);
  }
}

void PeerTable::lose(Peer& peer, const std::string& why, Ended& ended, LogLevel level,
                     Guarantee guarantee) {
  const bool was_known = peer.member && !std::exchange(peer.lost, true);
  const auto current = std::exchange(peer.current, nullptr);
  const bool is_new = std::find(peer.sessions.begin(), peer.sessions.end(), current) ==
                      peer.sessions.end();  // it has no connection yet
  for (auto& session : std::exchange(peer.sessions, {}))
    peer.broken.push_back(std::move(session));
  if (current && is_new) peer.broken.push_back(current);
  ++sessions_changed_;
  peer.info.state = PeerState::lost;
  peer.lost_at = environment_.loop->now();
  peer.info.last_error = why;
  peer.trials.clear();
  peer.tries.since.reset();
  auto broken = peer.broken;
  const auto failed = end_broken(peer, peer_lost(peer.info.name, why), guarantee, ended);
  report_lost(peer, was_known, why, level, failed, ended);
  for (auto& session : broken) {
    ended.push_back([session] { session->close(); });
  }
  if (was_known) {
    ended.push_back([this, info = peer.info, why] {
      environment_.changed({.kind = PeerChange::Kind::lost, .peer = info, .reason = why});
    });
  }
}

}  // namespace batchrpc
