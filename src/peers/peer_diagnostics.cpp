#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "call/duration_text.hpp"
#include "peers/peer_table.hpp"

// Log lines about peers, and their statistics.
namespace batchrpc {
namespace {

std::string count_of(std::uint64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// Returns how the pending calls ended; empty if there were none.
std::string fate_of(const OutgoingCalls::Failed& failed, const std::string& of_those_that_left) {
  std::string text;
  const auto add = [&](std::size_t count, const std::string& error) {
    if (count == 0) return;
    text += text.empty() ? ": " + count_of(count, "call") + (count == 1 ? " ends" : " end")
                         : ", " + std::to_string(count);
    text += " as " + error;
  };
  add(failed.left, of_those_that_left);
  add(failed.not_sent, "NotSent");
  return text;
}

}  // namespace

// Do not call this under the lock: the program's log sink runs here.
void PeerTable::log(LogLevel level, const std::string& line) const {
  environment_.host()->log().write(level, line);
}

std::shared_ptr<PeerLogLimits> PeerTable::log_limits_of(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto at = peers_.find(name);
  return at != peers_.end() ? at->second.log_limits : nullptr;
}

// Logs a line that a peer may cause repeatedly. At debug level nothing is left out.
void PeerTable::report_on(const std::string& name, LogLevel level, const std::string& line) const {
  const auto host = environment_.host();
  if (!host->log().enabled(level)) return;
  const auto limits = level > LogLevel::debug ? log_limits_of(name) : nullptr;
  if (!limits) return host->log().write(level, line);  // the peer was forgotten
  const TimePoint now = environment_.loop->now();
  if (level < LogLevel::warning) return limits->changes.write(host->log(), level, now, line);
  auto passed = limits->losses.pass(now, line);
  if (passed) passed = host->log_limits().losses.pass(now, *passed);  // of new names, too
  if (passed) host->log().write(level, *passed);
}

void PeerTable::report_connected(const Session& session, bool was_lost, const std::string& name,
                                 Ended& ended) {
  std::string line = session.was_accepted() ? name + " has connected" : "connected to " + name;
  if (was_lost) line += " again after it was lost";
  const auto proof = session.connection().proof();
  line += " (" + session.connection().description() + (proof ? ", " + proof->identity : "") + ")";
  ended.push_back([this, was_lost, name, line = std::move(line)] {
    report_on(name, was_lost ? LogLevel::info : LogLevel::debug, line);
  });
}

void PeerTable::report_broken(const Session& session, const std::string& why) const {
  report_on(session.peer()->name, LogLevel::info,
            "the connection to " + session.peer()->name + " broke (" + why +
                "): " + (session.was_accepted() ? "the peer may connect again" : "reconnecting"));
}

void PeerTable::report_resumed(const Session& session) const {
  const std::uint64_t frames = session.sent_again();
  report_on(session.peer()->name, LogLevel::info,
            "reconnected to " + session.peer()->name + " after " +
                text_of(environment_.loop->now() - session.liveness().broke_at()) +
                ": its calls continue" +
                (frames > 0
                     ? ", " + count_of(frames, "frame") + (frames == 1 ? " is" : " are") + " resent"
                     : ""));
}

// Runs after the calls that the loss ends have ended.
void PeerTable::report_lost(const Peer& peer, bool was_known, const std::string& why,
                            LogLevel level, const std::shared_ptr<OutgoingCalls::Failed>& failed,
                            Ended& ended) {
  const std::string& name = peer.info.name;
  std::string line = name + " is lost";
  if (!was_known) {
    level = LogLevel::debug;
    line = peer.member ? name + " is still lost" : name + " is gone";
  }
  line += " (" + why + ")";
  ended.push_back([this, name, level, failed, line = std::move(line)] {
    report_on(name, level, line + fate_of(*failed, "PeerLost"));
  });
}

void PeerTable::report_forgotten(const std::string& name, const std::string& why,
                                 const std::shared_ptr<OutgoingCalls::Failed>& failed,
                                 Ended& ended) {
  ended.push_back([this, name, why, failed] {
    const bool harmless = failed->left == 0;
    report_on(name, harmless ? LogLevel::debug : LogLevel::warning,
              "a session with " + name + " has ended (" + why + ")" + fate_of(*failed, "Unknown"));
  });
}

// Reports a connection that never became a session.
void PeerTable::report_refused(const Session& session, Ended& ended) {
  if (!session.was_accepted() || !session.goodbye()) return;
  // A node that asks for a taken name asks repeatedly.
  const auto code = static_cast<ErrorCode>(session.goodbye()->code);
  const LogLevel level = code == ErrorCode::overloaded          ? LogLevel::debug
                         : code == ErrorCode::permission_denied ? LogLevel::warning
                                                                : LogLevel::info;
  ended.push_back([this, level,
                   line = "refused " + session.connection().description() + ": " +
                          session.goodbye()->reason] { report_unidentified(line, level); });
}

void PeerTable::report_silence(const Session& session, int ticks_before) const {
  constexpr int kTold = 2;
  const std::string name = session.peer()->name;
  if (session.liveness().silent_ticks() == kTold) {
    report_on(name, LogLevel::info,
              name + " has been silent for " +
                  text_of(environment_.loop->now() - session.liveness().heard_at()));
  } else if (ticks_before >= kTold && session.liveness().silent_ticks() == 0) {
    report_on(name, LogLevel::info, name + " responds again");
  }
}

// --- statistics

// Adds the counts of a session that is forgotten afterwards.
void PeerTable::add_up(PeerInfo& info, Session& session) {
  info.bytes_sent += session.connection().output().written_bytes();
  info.bytes_received += session.connection().bytes_received();
  if (session.liveness().round_trip() != Duration::zero())
    info.round_trip = session.liveness().round_trip();
}

PeerInfo PeerTable::info_of(const Peer& peer) {
  PeerInfo info = peer.info;
  // The peer was restarted and has not joined again, or no address has answered so far.
  if (!peer.member || peer.lost) info.state = PeerState::lost;
  for (const auto& session : peer.broken)
    add_up(info, *session);
  bool listed = false;
  for (const auto& session : peer.sessions) {
    add_up(info, *session);
    listed = listed || session == peer.current;
  }
  if (peer.current && !listed) add_up(info, *peer.current);
  if (peer.current && peer.current->liveness().round_trip() != Duration::zero()) {
    info.round_trip = peer.current->liveness().round_trip();
  }
  return info;
}

std::map<std::string, PeerTable::Load> PeerTable::loads() const {
  std::map<std::string, Load> loads;
  for (const auto& [name, session] : all_sessions()) {
    const OutputQueue& output = session->connection().output();
    Load& load = loads[name];
    load.pending += session->outgoing().pending();
    load.answering += static_cast<std::size_t>(std::max(0, session->incoming().answering()));
    load.output_bytes += output.queued_bytes() + output.ungranted_bytes() + output.paused_bytes() +
                         output.kept_bytes();
  }
  return loads;
}

}  // namespace batchrpc
