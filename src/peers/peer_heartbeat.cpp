#include <algorithm>

#include "base/per_thread.hpp"
#include "batchrpc/base/error.hpp"
#include "call/duration_text.hpp"
#include "peers/peer_table.hpp"

// Heartbeats to silent peers, reports of unfinished work, and the end of a peer table.
namespace batchrpc {

void PeerTable::tick() {
  drop_half_open();
  forget_dead();
  const auto silent_limit =
      (options_.liveness.dead_after + options_.liveness.ping_after - Duration(1)) /
      options_.liveness.ping_after;
  std::vector<std::shared_ptr<Session>> sessions;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, peer] : peers_) {
      sessions.insert(sessions.end(), peer.sessions.begin(), peer.sessions.end());
    }
  }
  Ended ended;
  for (const auto& session : sessions) {
    if (!session->is_attached()) continue;
    const int before = session->liveness().silent_ticks();
    const int silent = session->tick();
    if (silent < silent_limit) {
      report_silence(*session, before);
      if (silent > 0 && silent == silent_limit / 2 && !session->was_accepted()) {
        // TCP now retransmits too rarely for the time that is left. A new connection starts fresh.
        session->connection().break_off("it is silent");
      }
      continue;
    }
    const std::lock_guard lock(mutex_);
    Peer* peer = find(session->peer()->name);
    if (peer != nullptr && !closed_) {
      lose(*peer, "it was silent for " + text_of(options_.liveness.dead_after), ended);
      drop_unidentified(session->peer()->name);
    }
  }
  run(ended);
}

// Forgets lost peers whose lease has ended, the longest lost first, if there are too many. A node
// that returns after that joins again.
void PeerTable::forget_dead() {
  const std::lock_guard lock(mutex_);
  const TimePoint now = environment_.loop->now();
  std::vector<std::pair<TimePoint, std::string>> dead;
  for (const auto& [name, peer] : peers_) {
    if (peer.info.state != PeerState::lost || !peer.sessions.empty() || peer.current) continue;
    // Other nodes try to return to the root, and may yet reach a peer that the root has not lost.
    if (self_.rank != 0 && (peer.info.rank == 0 || !peer.gone)) continue;
    dead.emplace_back(peer.lost_at, name);
  }
  if (dead.size() <= kRememberedDead) return;
  std::sort(dead.begin(), dead.end());
  dead.resize(dead.size() - kRememberedDead);
  const Duration lease = std::max(options_.liveness.rref_lease, options_.liveness.dead_after);
  for (const auto& [lost_at, name] : dead) {
    if (now - lost_at > lease) peers_.erase(name);
  }
}

std::vector<PeerInfo> PeerTable::snapshot() const {
  const std::lock_guard lock(mutex_);
  std::vector<PeerInfo> peers;
  for (const auto& [name, peer] : peers_) {
    if (name == self_.name || !peer.known) continue;
    peers.push_back(info_of(peer));
  }
  return peers;
}

std::optional<PeerInfo> PeerTable::info(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto at = peers_.find(name);
  if (at == peers_.end() || name == self_.name || !at->second.known) return std::nullopt;
  return info_of(at->second);
}

bool PeerTable::is_live(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto at = peers_.find(name);
  return at != peers_.end() && at->second.member && !at->second.lost;
}

// Batchers ask for each row. So each thread remembers the peer that was current last; a peer that
// is lost counts as a change of sessions.
bool PeerTable::is_current(const PeerIdentity& peer) const {
  struct Last {
    std::uint64_t table = 0;
    std::uint64_t changes = 0;
    std::uint64_t incarnation = 0;
    bool operator==(const Last&) const = default;
  };
  const Last asked{.table = number_,
                   .changes = sessions_changed_.load(std::memory_order_acquire),
                   .incarnation = peer.incarnation};
  Last& last = detail::per_thread<Last>();
  if (last == asked) return true;
  const std::lock_guard lock(mutex_);
  const auto at = peers_.find(peer.name);
  if (at == peers_.end()) return true;
  const Peer& known = at->second;
  if (known.info.incarnation == peer.incarnation) {
    const bool is_current = known.member && !known.lost;
    if (is_current) last = asked;
    return is_current;
  }
  return std::find(known.former.begin(), known.former.end(), peer.incarnation) ==
         known.former.end();
}

PeerStanding PeerTable::standing(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto at = peers_.find(name);
  if (at == peers_.end()) return {};
  const Peer& peer = at->second;
  return {.incarnation = peer.info.incarnation,
          .live = peer.info.state != PeerState::lost && !peer.lost,
          .dead = peer.dead,
          .left = peer.left,
          .sessions_ended = peer.sessions_ended};
}

bool PeerTable::is_behind(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto at = peers_.find(name);
  return at != peers_.end() && at->second.current && at->second.current->is_behind();
}

bool PeerTable::is_known(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto at = peers_.find(name);
  return at != peers_.end() && at->second.known;
}

std::vector<std::pair<std::string, std::shared_ptr<Session>>> PeerTable::all_sessions() const {
  std::vector<std::pair<std::string, std::shared_ptr<Session>>> sessions;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, peer] : peers_) {
      for (const auto& session : peer.sessions)
        sessions.emplace_back(name, session);
      const bool listed = std::find(peer.sessions.begin(), peer.sessions.end(), peer.current) !=
                          peer.sessions.end();
      if (peer.current && !listed) sessions.emplace_back(name, peer.current);
      for (const auto& session : peer.broken)
        sessions.emplace_back(name, session);
    }
    for (const auto& [name, departed] : departed_) {
      if (auto session = departed.lock()) sessions.emplace_back(name, std::move(session));
    }
  }
  return sessions;
}

bool PeerTable::is_finished() const {
  const auto sessions = all_sessions();
  return std::all_of(sessions.begin(), sessions.end(), [](const auto& entry) {
    Session& session = *entry.second;
    const OutputQueue& output = session.connection().output();
    return session.outgoing().pending() == 0 && session.incoming().answering() == 0 &&
           output.queued_bytes() == 0 && output.ungranted_bytes() == 0 &&
           output.paused_bytes() == 0;
  });
}

bool PeerTable::is_sent() const {
  const auto sessions = all_sessions();
  return std::all_of(sessions.begin(), sessions.end(), [](const auto& entry) {
    Session& session = *entry.second;
    const OutputQueue& output = session.connection().output();
    if (!session.is_attached()) return session.is_open() || output.queued_bytes() == 0;
    return output.queued_bytes() == 0 && output.unconfirmed_bytes() == 0;
  });
}

std::vector<PeerTable::SentMark> PeerTable::mark_sent() const {
  std::vector<SentMark> marks;
  for (auto& [name, session] : all_sessions()) {
    const OutputQueue::Frames frames = session->connection().output().frames();
    if (frames.unacknowledged() == 0) continue;
    if (session->is_attached()) session->ask_for_acknowledgement();
    marks.push_back({.session = std::move(session), .frames = frames.sent});
  }
  return marks;
}

bool PeerTable::is_received(const std::vector<SentMark>& marks) const {
  const auto sessions = all_sessions();
  const auto has_ended = [&](const std::shared_ptr<Session>& session) {
    return session->outgoing().is_closed() ||
           std::none_of(sessions.begin(), sessions.end(),
                        [&](const auto& entry) { return entry.second == session; });
  };
  return std::all_of(marks.begin(), marks.end(), [&](const SentMark& mark) {
    return mark.session->connection().output().frames().acknowledged >= mark.frames ||
           has_ended(mark.session);
  });
}

std::vector<std::string> PeerTable::pending() const {
  std::vector<std::string> texts;
  for (const auto& [name, session] : all_sessions()) {
    for (const std::string& function : session->outgoing().pending_functions()) {
      texts.push_back(name + ": " + function);
    }
    if (const int calls = session->incoming().answering(); calls > 0) {
      const std::string functions = session->incoming().answering_functions();
      texts.push_back(std::to_string(calls) + (calls == 1 ? " call from " : " calls from ") + name +
                      ", not yet answered" + (functions.empty() ? "" : ": ") + functions);
    }
    const auto report_bytes = [&texts, &to = name](std::size_t bytes, const char* why) {
      if (bytes > 0) texts.push_back(std::to_string(bytes) + " bytes to " + to + why);
    };
    const OutputQueue& output = session->connection().output();
    report_bytes(output.queued_bytes(), "");
    report_bytes(output.ungranted_bytes(), ", which has not granted credit for them");
    report_bytes(output.paused_bytes(), ", which has paused them");
  }
  return texts;
}

void PeerTable::refuse_waiting(const std::exception_ptr& error) const {
  for (const auto& [name, session] : all_sessions())
    session->refuse_waiting(error);
}

void PeerTable::close(const std::string& reason) {
  std::vector<std::shared_ptr<Session>> sessions;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    ++sessions_changed_;
    for (auto& [name, peer] : peers_) {
      sessions.insert(sessions.end(), peer.sessions.begin(), peer.sessions.end());
      sessions.insert(sessions.end(), peer.broken.begin(), peer.broken.end());
      if (peer.current) sessions.push_back(peer.current);
    }
    for (const HalfOpen& entry : half_open_)
      sessions.push_back(entry.session);
    peers_.clear();
    half_open_.clear();
  }
  for (const auto& session : sessions) {
    session->say_goodbye(ErrorCode::shut_down, reason);
    const auto error = [this](const std::string& function, bool sent) {
      return std::make_exception_ptr(ShutDown(
          "node " + self_.name + " was shut down while '" + function + "' was in flight", sent));
    };
    session->outgoing().fail_all(error, Guarantee::shutdown);
  }
}

}  // namespace batchrpc
