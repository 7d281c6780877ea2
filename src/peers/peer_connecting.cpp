#include <algorithm>
#include <system_error>
#include <utility>

#include "base/system_error_text.hpp"
#include "batchrpc/base/error.hpp"
#include "call/duration_text.hpp"
#include "peers/peer_table.hpp"

// How a peer table makes connections. It tries the addresses in turn, and again after growing
// pauses, until the peer counts as dead.
namespace batchrpc {

std::shared_ptr<Session> PeerTable::begin_connecting(Peer& peer) {
  peer.current = make_session(peer.info.name, session_ids_() | 1);
  ++sessions_changed_;
  peer.info.state = PeerState::connecting;
  if (!peer.tries.since) peer.tries.since = environment_.loop->now();
  begin_trial(peer, peer.current, *peer.tries.since);
  return peer.current;
}

void PeerTable::seek(std::string_view name) {
  const std::lock_guard lock(mutex_);
  // A peer that the root has lost is lost to the group, and returns by itself.
  if (self_.rank == 0) return;
  Peer* const peer = find(name);
  if (closed_ || peer == nullptr || !peer->member || !peer->lost || peer->gone || peer->current)
    return;
  begin_connecting(*peer);
}

// --- a session waits for a connection

// The peer has been out of reach since `since`.
void PeerTable::begin_trial(Peer& peer, const std::shared_ptr<Session>& session, TimePoint since) {
  const TimePoint now = environment_.loop->now();
  const TimePoint give_up_at = since + options_.liveness.dead_after;
  Trial& trial = peer.trials.emplace_back(Trial{.session = session, .give_up_at = give_up_at});
  try_later(peer, trial, peer.tries.failed == 0 ? now : std::max(now, peer.tries.next));
  give_up_later(give_up_at, peer.info.name, session);
}

void PeerTable::give_up_later(TimePoint when, const std::string& name,
                              const std::shared_ptr<Session>& session) {
  environment_.loop->schedule(when, [this, weak_host = std::weak_ptr(environment_.host()), name,
                                     weak_session = std::weak_ptr(session)] {
    const auto host = weak_host.lock();
    const auto waiting = weak_session.lock();
    if (host && waiting) give_up(name, waiting);
  });
}

PeerTable::Trial* PeerTable::trial_of(Peer* peer, const std::shared_ptr<Session>& session) {
  if (peer == nullptr) return nullptr;
  const auto at = std::find_if(peer->trials.begin(), peer->trials.end(),
                               [&](const Trial& trial) { return trial.session == session; });
  return at != peer->trials.end() ? &*at : nullptr;
}

void PeerTable::end_trial(Peer& peer, const Session& session) {
  std::erase_if(peer.trials, [&](const Trial& trial) { return trial.session.get() == &session; });
}

// The peer cannot be reached. If another connection reaches it, only this session ends.
void PeerTable::give_up(const std::string& name, const std::shared_ptr<Session>& session) {
  Ended ended;
  {
    const std::lock_guard lock(mutex_);
    Peer* const peer = find(name);
    const Trial* const trial = trial_of(peer, session);
    if (closed_ || trial == nullptr) return;
    if (trial->give_up_at > environment_.loop->now()) {  // it was moved, or is of another trial
      give_up_later(trial->give_up_at, name, session);
      return;
    }
    if (trial->trying) put_off(*peer);  // the try has timed out
    forget_half_open(*session);
    const std::string why =
        (session->is_open() ? "it was silent for " : "it could not be reached for ") +
        text_of(options_.liveness.dead_after) +
        (trial->last_error.empty() ? "" : "; last error: " + trial->last_error);
    if (has_connection(*peer)) {
      leave_out(*peer, session);
      settle_broken(*peer, why, ended);
      ended.push_back([session] { session->close(); });
    } else {
      lose(*peer, why, ended);
      drop_unidentified(name);
    }
  }
  run(ended);
}

// Starts with a random pause of up to a second, so that many nodes that lost one peer do not return
// at once. Later pauses grow by 1.6 from 100 ms, with a jitter of a fifth.
Duration PeerTable::pause_after(int tries) {
  double milliseconds = 0;
  if (tries == 0) {
    milliseconds = std::uniform_real_distribution(0.0, 1000.0)(random_);
  } else {
    milliseconds = 100;
    for (int i = 1; i < std::min(tries, 12); ++i)
      milliseconds *= 1.6;
    milliseconds = std::min(milliseconds * std::uniform_real_distribution(0.8, 1.2)(random_), 1e4);
  }
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double, std::milli>(milliseconds));
}

void PeerTable::put_off(Peer& peer) {
  peer.tries.next = environment_.loop->now() + pause_after(peer.tries.failed);
  ++peer.tries.failed;
}

// Plans the next try after a failed one.
void PeerTable::try_again(Peer& peer, Trial& trial) {
  trial.trying = false;
  put_off(peer);
  try_later(peer, trial, peer.tries.next);
}

// The peer is reachable, so that sessions need not wait for the next try.
void PeerTable::hurry(Peer& peer) {
  peer.tries.failed = 0;
  for (Trial& trial : peer.trials) {
    if (!trial.trying && !trial.session->was_accepted()) {
      try_later(peer, trial, environment_.loop->now());
    }
  }
}

// Replaces the try that was planned. The reference is weak, since a loop that no longer runs must
// not keep the node alive.
void PeerTable::try_later(const Peer& peer, Trial& trial, TimePoint when) {
  trial.next_try = ++tries_;
  environment_.loop->schedule(
      when, [this, weak_host = std::weak_ptr(environment_.host()), name = peer.info.name,
             weak_session = std::weak_ptr(trial.session), number = trial.next_try] {
        const auto host = weak_host.lock();
        const auto waiting = weak_session.lock();
        if (host && waiting) try_now(name, waiting, number);
      });
}

void PeerTable::try_now(const std::string& name, const std::shared_ptr<Session>& session,
                        std::uint64_t number) {
  {
    const std::lock_guard lock(mutex_);
    Trial* const trial = trial_of(find(name), session);
    if (trial == nullptr || trial->next_try != number) return;  // another try has replaced it
    trial->trying = true;
  }
  try_addresses(name, session, 0, true, {});
}

void PeerTable::try_addresses(const std::string& name, const std::shared_ptr<Session>& session,
                              std::size_t index, bool all_refused, const std::string& why) {
  std::string address;
  TimePoint give_up_at;
  {
    const std::lock_guard lock(mutex_);
    Peer* const peer = find(name);
    Trial* const trial = trial_of(peer, session);
    if (closed_ || trial == nullptr) return;
    std::vector<std::string> addresses = peer->info.addresses;
    // The address that worked before comes first: it may be a tunnel round an obstacle.
    if (const std::string& dialled = session->dialled(); !dialled.empty()) {
      std::erase(addresses, dialled);
      addresses.insert(addresses.begin(), dialled);
    }
    if (index < addresses.size()) address = addresses[index];
    give_up_at = trial->give_up_at;
  }
  if (address.empty()) {
    if (index == 0 && session->was_accepted()) return;  // only the peer can connect again
    connect_failed(name, session, all_refused,
                   index == 0    ? "it has no address that can be reached from here"
                   : all_refused ? "its address refuses connections"
                                 : "its address cannot be reached (" + why + ")");
    return;
  }
  if (index == 0) log(LogLevel::debug, "connecting to " + name);
  // The reference is weak. The transport owns the handler, and the node owns the transport.
  auto next = [this, weak_host = std::weak_ptr(environment_.host()), name,
               weak_session = std::weak_ptr(session), index, all_refused,
               address](std::unique_ptr<Stream> stream, std::error_code error) {
    const auto host = weak_host.lock();
    const auto waiting = weak_session.lock();
    if (!host || !waiting) return;
    if (stream) {
      if (!waiting->was_accepted()) waiting->set_dialled(address);
      connected(name, waiting, std::move(stream));
      return;
    }
    const bool refused = error == std::errc::connection_refused;
    try_addresses(name, waiting, index + 1, all_refused && refused, system_error_text(error));
  };
  try {
    TransportSet& transports = *environment_.transports;
    transports.connect(transports.parse(address, AddressUse::connect), give_up_at, next);
  } catch (const InvalidArgument& unusable) {  // the peer has announced an unusable address
    report_on(name, LogLevel::debug, name + " at " + address + ": " + unusable.what());
    next(nullptr, std::make_error_code(std::errc::address_not_available));
  }
}

void PeerTable::connected(const std::string& name, const std::shared_ptr<Session>& session,
                          std::unique_ptr<Stream> stream) {
  {
    const std::lock_guard lock(mutex_);
    Peer* const peer = find(name);
    Trial* const trial = trial_of(peer, session);
    if (closed_ || trial == nullptr) return;
    // To a distant peer the handshake may take as long again. But the system also accepts
    // connections for a stopped process.
    const bool is_new = !session->is_open() && !peer->lost;
    if (is_new && !std::exchange(trial->has_connected, true)) {
      trial->give_up_at += options_.liveness.dead_after;
    }
    if (session->was_accepted()) {
      // The peer is reachable and has to connect again. If it does not, a new session need not wait
      // as long as this one did.
      peer->tries.failed = 0;
      trial->trying = false;
      try_later(*peer, *trial, environment_.loop->now() + pause_after(trial->probes++));
      return;
    }
    half_open_.push_back({session, environment_.loop->now()});
  }
  session->start(std::move(stream), false);
}

void PeerTable::session_detached(const std::shared_ptr<Session>& session, const std::string& why) {
  bool was_attached = false;
  Ended ended;
  {
    const std::lock_guard lock(mutex_);
    if (!session->was_accepted()) forget_half_open(*session);
    Peer* const peer = peer_of(session);
    if (closed_) return;
    if (peer != nullptr) peer->info.last_error = why;
    if (peer == nullptr) {  // the peer was lost while this session connected
      end_unowned(session, why, ended);
    } else if (Trial* const trial = trial_of(peer, session)) {  // the handshake broke
      trial->last_error = why;
      try_again(*peer, *trial);
    } else {
      was_attached = true;
      if (peer->current == session) peer->info.state = PeerState::connecting;
      // Connects again at once, but not repeatedly if each connection breaks before it was of use.
      const bool hurry = session->has_made_progress() || !peer->tries.were_of_no_use;
      peer->tries.were_of_no_use = !session->has_made_progress();
      peer->tries.failed = hurry ? 0 : 1;
      if (!hurry) put_off(*peer);
      begin_trial(*peer, session, session->liveness().heard_at());
    }
  }
  run(ended);
  if (was_attached) report_broken(*session, why);
}

void PeerTable::session_resumed(Session& session) {
  {
    const std::lock_guard lock(mutex_);
    if (!session.was_accepted()) forget_half_open(session);
    Peer* const peer = find(session.peer()->name);
    if (closed_ || peer == nullptr) return;
    end_trial(*peer, session);
    peer->info.state = PeerState::connected;
    ++peer->info.reconnects;
  }
  report_resumed(session);
}

// Returns the session that `hello` resumes. This node may not have noticed yet that its connection
// is broken.
std::shared_ptr<Session> PeerTable::find_session(const Session& half_open,
                                                 const wire::Hello& hello) {
  const std::lock_guard lock(mutex_);
  const Peer* const peer = find(hello.name);
  if (closed_ || peer == nullptr || peer->info.incarnation != hello.incarnation) return nullptr;
  for (const auto& session : peer->sessions) {
    if (session->id() != hello.session || !session->was_accepted()) continue;
    if (session->peer_secret() != hello.secret) continue;
    if (!session->is_of_same_identity(half_open.connection())) continue;
    forget_half_open(half_open);
    return session;
  }
  return nullptr;
}

// --- connections of other kinds

std::shared_ptr<Session> PeerTable::connect_to(const Address& address) {
  std::shared_ptr<Session> session;
  {
    const std::lock_guard lock(mutex_);
    session = make_session({}, session_ids_() | 1);
    session->set_dialled(address.to_string());
    half_open_.push_back({session, environment_.loop->now()});
  }
  log(LogLevel::debug, "connecting to " + address.to_string());
  environment_.transports->connect(
      address, environment_.loop->now() + options_.liveness.dead_after,
      [weak_host = std::weak_ptr(environment_.host()), weak_session = std::weak_ptr(session)](
          std::unique_ptr<Stream> stream, std::error_code error) {
        const auto host = weak_host.lock();
        const auto waiting = weak_session.lock();
        if (!host || !waiting || waiting->outgoing().is_closed()) return;
        if (stream) {
          waiting->start(std::move(stream), false);
        } else {
          waiting->on_closed(system_error_text(error), false);
        }
      });
  return session;
}

void PeerTable::retire(const std::shared_ptr<Session>& session, const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    forget_half_open(*session);
    for (auto& [name, peer] : peers_) {
      std::erase(peer.sessions, session);
      if (peer.current == session) {
        peer.current = peer.sessions.empty() ? nullptr : peer.sessions.front();
        ++sessions_changed_;
        if (!peer.member && !peer.current) peer.info.state = PeerState::lost;
      }
    }
    std::erase_if(peers_, [](const auto& entry) {
      return !entry.second.known && entry.second.sessions.empty() && !entry.second.current;
    });
  }
  session->say_goodbye(ErrorCode::shut_down, why);
}

// An address could not be reached. Tries again for a while, unless the address refuses connections.
void PeerTable::connect_failed(const std::string& name, const std::shared_ptr<Session>& session,
                               bool refused, const std::string& why) {
  Ended ended;
  {
    const std::lock_guard lock(mutex_);
    Peer* const peer = find(name);
    Trial* const trial = trial_of(peer, session);
    if (closed_ || trial == nullptr) return;
    peer->info.last_error = why;
    session->note_failed(why);
    if (!refused) {
      trial->last_error = why;
      try_again(*peer, *trial);
      return;
    }
    put_off(*peer);
    peer->dead = true;
    lose(*peer, why, ended);
    drop_unidentified(name);
  }
  run(ended);
}

}  // namespace batchrpc
