#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/random_bits.hpp"
#include "base/secret.hpp"
#include "batchrpc/base/export.hpp"
#include "batchrpc/call/node_options.hpp"
#include "call/peer_view.hpp"
#include "peers/deny_list.hpp"
#include "peers/member.hpp"
#include "session/log_limits.hpp"
#include "session/session.hpp"
#include "transport/transport_set.hpp"

namespace batchrpc {

/// The peers of a node and the sessions with them. Connects at the first call, reconnects, notices
/// deaths, and decides how calls to a lost peer end (the timeline in docs/errors.md). Thread-safe.
/// Its work is done on the loop.
class PeerTable final : public PeerView {
 public:
  /// The number of lost peers that a node remembers for longer than their lease.
  static constexpr std::size_t kRememberedDead = 256;

  struct Environment {
    std::shared_ptr<Loop> loop;
    std::shared_ptr<WaitContext> context;
    TransportSet* transports = nullptr;
    std::function<std::shared_ptr<SessionHost>()> host;
    /// The secret by which this node proves itself to that incarnation of a peer.
    std::function<Secret(std::string_view peer, std::uint64_t incarnation)> secret_for;
    std::function<void(const PeerChange&)> changed;  ///< called without locks
    /// A node that joins at this root is refused, because the member `holder` has its name. Returns
    /// whether that is final. Called with the table's lock; must not call the table.
    std::function<bool(const std::string& holder, TimePoint heard_at, const std::string& why)>
        refused;
  };

  PeerTable(Environment environment, const NodeOptions& options, PeerIdentity self);
  ~PeerTable();

  /// Adds or updates a peer that the group has announced. Returns whether it is new, or another
  /// incarnation.
  bool add(const Member& member, std::vector<std::string> addresses);
  /// The group has announced that this incarnation is gone. A session that still works is kept.
  void remove(const std::string& name, std::uint64_t incarnation, const std::string& reason);

  /// Another node has taken the rank of this incarnation, which the root had lost. It is no member
  /// until it joins again.
  void exclude(std::string_view name, std::uint64_t incarnation);

  /// Returns the session for calls to `peer`; begins to connect if there is none. Throws NotFound
  /// for an unknown name, and ShutDown after close().
  std::shared_ptr<Session> session(std::string_view peer);
  /// Sets this node's rank, once the root has chosen it.
  void set_own_rank(int rank);
  /// Returns the name of the peer of this rank. If there are several, the one that lives. Throws
  /// NotFound.
  std::string name_of(int rank) const;

  void seek(std::string_view name) override;

  /// Returns when the peer was heard over a connection that still stands; if there is none, a time
  /// before all others.
  [[nodiscard]] TimePoint heard_at(std::string_view name) const;

  /// Makes a session to an address where some node is expected, as when joining. Its peer
  /// introduces itself.
  std::shared_ptr<Session> connect_to(const Address& address);
  /// Ends a session of connect_to() that is no longer needed. On the loop.
  void retire(const std::shared_ptr<Session>& session, const std::string& why);
  /// Takes a connection that a listener has accepted. On the loop.
  void accept(std::unique_ptr<Stream> stream);

  /// For SessionHost.
  std::shared_ptr<Session> find_session(const Session& half_open, const wire::Hello& hello);
  void address(wire::Hello& hello, std::string_view peer) const;
  [[nodiscard]] bool admit(Session& session, const wire::Hello& hello);
  void session_detached(const std::shared_ptr<Session>& session, const std::string& why);
  void session_resumed(Session& session);
  void session_closed(const std::shared_ptr<Session>& session, const std::string& why);

  /// Called once per ping interval, on the loop.
  void tick();
  /// Loads the deny list if it has changed, and ends the sessions with its nodes. On the loop.
  void look_at_denied();

  [[nodiscard]] BATCHRPC_EXPORT std::vector<PeerInfo> snapshot() const;
  /// Returns one of these, if the peer is among them.
  [[nodiscard]] std::optional<PeerInfo> info(std::string_view name) const;
  /// The unfinished work with a peer.
  struct Load {
    std::size_t pending = 0;       ///< calls of this node
    std::size_t answering = 0;     ///< calls of the peer
    std::size_t output_bytes = 0;  ///< queued, or kept until they are acknowledged
  };
  /// Returns the loads by the names of the peers.
  [[nodiscard]] std::map<std::string, Load> loads() const;
  [[nodiscard]] bool is_live(std::string_view name) const;
  [[nodiscard]] bool is_current(const PeerIdentity& peer) const override;
  [[nodiscard]] bool is_member(const PeerIdentity& peer) const override;
  /// Whether `peer` is the root of the group.
  [[nodiscard]] bool is_root(const PeerIdentity& peer) const;
  [[nodiscard]] PeerStanding standing(std::string_view name) const override;
  [[nodiscard]] bool is_behind(std::string_view name) const override;
  /// Whether the group has, or had, a node of that name.
  [[nodiscard]] bool is_known(std::string_view name) const;
  /// Returns texts about unfinished work. For calls of this node: "worker1: add (3 calls)". For
  /// calls of peers: "4 calls from worker1, not yet answered: add (3 calls), sum". For bytes
  /// that have not left: "4096 bytes to worker1".
  [[nodiscard]] std::vector<std::string> pending() const;
  /// Whether pending() is empty.
  [[nodiscard]] bool is_finished() const;
  /// Whether the peers have received all output, except the output for broken connections.
  [[nodiscard]] bool is_sent() const;

  /// What was sent over a session up to some moment.
  struct SentMark {
    std::shared_ptr<Session> session;
    std::uint64_t frames = 0;
  };
  /// Returns what has been sent to all peers so far, and asks for its acknowledgement. On the loop.
  [[nodiscard]] std::vector<SentMark> mark_sent() const;
  /// Whether the peers have received all of that. A session that has ended counts as one that has.
  [[nodiscard]] bool is_received(const std::vector<SentMark>& marks) const;
  /// Answers those calls of peers that have not begun to run with `error`.
  void refuse_waiting(const std::exception_ptr& error) const;
  /// Says goodbye to all peers. Calls to them end with ShutDown. On the loop if it still runs.
  void close(const std::string& reason);

 private:
  // A session that waits for a connection. The side that makes the connections tries to connect.
  // The other side only probes whether the peer is reachable.
  struct Trial {
    std::shared_ptr<Session> session;
    TimePoint give_up_at;
    std::uint64_t next_try = 0;  // the number of the try that it waits for
    bool trying = false;         // a try is in progress
    bool has_connected = false;  // has a connection, but the handshake is not over
    int probes = 0;              // how many probes of an accepted session reached the peer
    std::string last_error{};
    std::uint64_t met = 0;  // another incarnation that answered; 0: none did
  };
  // Tries to connect to a peer, by whichever session.
  struct Tries {
    std::optional<TimePoint> since;  // when they began, for a first connection
    int failed = 0;                  // in a row
    TimePoint next{};
    bool were_of_no_use = false;  // the last connection brought only the handshake
  };
  struct Peer {
    PeerInfo info;
    std::optional<CallBudget> budget{};  // of all its sessions
    std::optional<Secret> secret{};      // of this incarnation, from its first hello
    bool member = false;                 // this incarnation is a member of the group
    bool known = false;  // the group has announced this incarnation or an earlier one
    bool lost = false;   // it was lost, and has not been heard since
    bool gone = false;   // the peer or the group has said so
    bool dead = false;   // the peer has said so, or its address refuses
    bool left = false;   // the peer has said so
    std::uint64_t sessions_ended = 0;
    std::vector<std::uint64_t> former{};             // the latest incarnations before this one
    std::shared_ptr<Session> current;                // the session for calls
    std::vector<std::shared_ptr<Session>> sessions;  // all open sessions
    std::vector<std::shared_ptr<Session>> broken;    // ended; their calls wait for their outcome
    std::vector<Trial> trials;
    TimePoint lost_at{};  // when its last session ended
    Tries tries{};
    std::shared_ptr<PeerLogLimits> log_limits = std::make_shared<PeerLogLimits>();
  };
  struct HalfOpen;
  using Ended = std::vector<std::function<void()>>;  // to be done without the lock

  // Returns all sessions with the names of their peers.
  [[nodiscard]] std::vector<std::pair<std::string, std::shared_ptr<Session>>> all_sessions() const;

  std::shared_ptr<Session> make_session(const std::string& expected_name, std::uint64_t id);
  std::shared_ptr<Session> begin_connecting(Peer& peer);
  void begin_trial(Peer& peer, const std::shared_ptr<Session>& session, TimePoint since);
  void give_up_later(TimePoint when, const std::string& name,
                     const std::shared_ptr<Session>& session);
  void give_up(const std::string& name, const std::shared_ptr<Session>& session);
  static Trial* trial_of(Peer* peer, const std::shared_ptr<Session>& session);
  static void end_trial(Peer& peer, const Session& session);
  void try_addresses(const std::string& name, const std::shared_ptr<Session>& session,
                     std::size_t index, bool all_refused, const std::string& why);
  void connected(const std::string& name, const std::shared_ptr<Session>& session,
                 std::unique_ptr<Stream> stream);
  void connect_failed(const std::string& name, const std::shared_ptr<Session>& session,
                      bool refused, const std::string& why);
  [[nodiscard]] Duration pause_after(int tries);
  void put_off(Peer& peer);
  void hurry(Peer& peer);
  void try_again(Peer& peer, Trial& trial);
  void leave_out(Peer& peer, const std::shared_ptr<Session>& session);
  void end_forgotten(Peer& peer, const Session& begun, Ended& ended);
  void lose(Peer& peer, const std::string& why, Ended& ended, LogLevel level = LogLevel::warning,
            Guarantee guarantee = Guarantee::dead_peer);
  void lose_former(Peer& peer, const std::shared_ptr<Session>& successor, Ended& ended);
  void lose_all_but(Peer& peer, const std::shared_ptr<Session>& kept, Ended& ended);
  [[nodiscard]] static TimePoint heard_at(const Peer& peer);
  void check_succession(const Peer& peer, const wire::Hello& hello) const;
  // Introductions: peer_introductions.cpp.
  void admit_now(Session& session, const wire::Hello& hello, Ended& ended);
  void check_identity(const Peer& peer, const wire::Hello& hello) const;
  [[nodiscard]] const Peer* find_member(std::string_view name, std::uint64_t incarnation) const;
  [[nodiscard]] Secret secret_to(std::string_view peer) const;
  [[nodiscard]] bool is_introduced(const wire::Hello& hello) const;
  void await_introduction(const Session& session, const wire::Hello& hello);
  void check_addressed(const wire::Hello& hello) const;
  void check_number(const wire::Hello& hello) const;
  void check_unique(const wire::Hello& hello) const;
  void check_joins(const wire::Hello& hello) const;
  void meet_other(Session& session, const wire::Hello& hello, Ended& ended);
  [[nodiscard]] static std::shared_ptr<Session> successor(const Peer& peer,
                                                          std::uint64_t incarnation);
  void introduce(const Member& member, Ended& ended);
  void forget_half_open(const Session& session);
  [[nodiscard]] static bool has_connection(const Peer& peer);
  [[nodiscard]] static bool is_ahead_of_group(const Peer& peer);
  void try_later(const Peer& peer, Trial& trial, TimePoint when);
  void try_now(const std::string& name, const std::shared_ptr<Session>& session,
               std::uint64_t number);
  void settle_soon(const Peer& peer, const std::string& why);
  std::shared_ptr<OutgoingCalls::Failed> end_broken(Peer& peer,
                                                    const OutgoingCalls::MakeError& error,
                                                    Guarantee guarantee, Ended& ended);
  static void end_unowned(const std::shared_ptr<Session>& session, const std::string& why,
                          Ended& ended);
  void settle_broken(Peer& peer, const std::string& why, Ended& ended);
  void drop_half_open();
  void drop_half_open(const std::shared_ptr<Session>& session, const std::string& why);
  void watch_half_open(TimePoint when);
  [[nodiscard]] Duration longest_wait(const HalfOpen& entry) const;
  void report_unidentified(const std::string& line, LogLevel level = LogLevel::warning);
  void drop_unidentified(std::string_view name);
  void forget_dead();

  void log(LogLevel level, const std::string& line) const;
  void report_on(const std::string& name, LogLevel level, const std::string& line) const;
  void report_connected(const Session& session, bool was_lost, const std::string& name,
                        Ended& ended);
  void report_broken(const Session& session, const std::string& why) const;
  void report_resumed(const Session& session) const;
  void report_lost(const Peer& peer, bool was_known, const std::string& why, LogLevel level,
                   const std::shared_ptr<OutgoingCalls::Failed>& failed, Ended& ended);
  void report_forgotten(const std::string& name, const std::string& why,
                        const std::shared_ptr<OutgoingCalls::Failed>& failed, Ended& ended);
  void report_refused(const Session& session, Ended& ended);
  void report_silence(const Session& session, int ticks_before) const;
  static void add_up(PeerInfo& info, Session& session);
  [[nodiscard]] static PeerInfo info_of(const Peer& peer);

  static void run(Ended& ended);
  std::shared_ptr<Session> find_session(std::string_view name);
  [[nodiscard]] Peer* find(std::string_view name);
  [[nodiscard]] std::shared_ptr<PeerLogLimits> log_limits_of(const std::string& name) const;
  Peer* peer_of(const std::shared_ptr<Session>& session);

  const Environment environment_;
  const NodeOptions options_;
  PeerIdentity self_;  // the mutex guards its rank

  const std::uint64_t number_;  // unique among the tables of the process
  /// Counts events after which calls to a peer may need another session.
  std::atomic<std::uint64_t> sessions_changed_{0};

  mutable std::mutex mutex_;
  std::map<std::string, Peer, std::less<>> peers_;
  // Sessions of peers that are gone, whose calls are still being answered here.
  std::vector<std::pair<std::string, std::weak_ptr<Session>>> departed_;
  // A connection whose peer has not identified itself, or has not joined yet.
  struct HalfOpen {
    std::shared_ptr<Session> session;
    TimePoint since;
    bool accepted = false;
    std::optional<wire::Hello> hello{};  // waits until the group introduces its sender
  };
  std::vector<HalfOpen> half_open_{};  // sorted by age, the oldest first
  bool half_open_watched_ = false;     // used on the loop only
  RandomBits session_ids_;             // peers must not guess them
  std::mt19937_64 random_;
  std::uint64_t tries_ = 0;  // the number of tries that were planned
  DenyList denied_;
  bool closed_ = false;
};

}  // namespace batchrpc
