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

#include "batchrpc/base/export.hpp"
#include "batchrpc/call/node_options.hpp"
#include "call/peer_view.hpp"
#include "peers/member.hpp"
#include "session/log_limits.hpp"
#include "session/session.hpp"
#include "transport/transport_set.hpp"

namespace batchrpc {

/// The peers of a node and the sessions with them: connects at the first call, reconnects, notices
/// deaths, and says how calls to a lost peer ended (the timeline in docs/errors.md). Thread-safe;
/// its work is done on the loop.
class PeerTable final : public PeerView {
 public:
  struct Environment {
    std::shared_ptr<Loop> loop;
    std::shared_ptr<WaitContext> context;
    TransportSet* transports = nullptr;
    std::function<std::shared_ptr<SessionHost>()> host;
    std::function<void(const PeerChange&)> changed;  ///< called without locks
  };

  PeerTable(Environment environment, const NodeOptions& options, PeerIdentity self);
  ~PeerTable();

  /// Adds or updates a peer that the group has announced. Returns whether it is new, or another
  /// incarnation.
  bool add(const Member& member, std::vector<std::string> addresses);
  /// The group says that this incarnation is gone. A session that still works is kept.
  void remove(const std::string& name, std::uint64_t incarnation, const std::string& reason);

  /// The session to call `peer` through; begins to connect if there is none. Throws NotFound for a
  /// name that is not known, ShutDown when closed.
  std::shared_ptr<Session> session(std::string_view peer);
  /// This node's rank, once the root has chosen it.
  void set_own_rank(int rank);
  /// The name of the peer of this rank; of several the one that lives. Throws NotFound.
  std::string name_of(int rank) const;

  void seek(std::string_view name) override;

  /// A session to an address where some node is expected, as at joining; its peer introduces
  /// itself.
  std::shared_ptr<Session> connect_to(const Address& address);
  /// Ends a session of connect_to() that is not needed any more. On the loop.
  void retire(const std::shared_ptr<Session>& session, const std::string& why);
  /// Takes a connection that a listener has accepted. On the loop.
  void accept(std::unique_ptr<Stream> stream);

  /// For SessionHost.
  std::shared_ptr<Session> find_session(const Session& half_open, const wire::Hello& hello);
  void admit(Session& session, const wire::Hello& hello);
  void session_detached(const std::shared_ptr<Session>& session, const std::string& why);
  void session_resumed(Session& session);
  void session_closed(const std::shared_ptr<Session>& session, const std::string& why);

  /// Once a ping interval, on the loop.
  void tick();

  [[nodiscard]] BATCHRPC_EXPORT std::vector<PeerInfo> snapshot() const;
  /// What is under way with a peer.
  struct Load {
    std::size_t pending = 0;       ///< calls of this node
    std::size_t answering = 0;     ///< calls of the peer
    std::size_t output_bytes = 0;  ///< queued, or kept until they are acknowledged
  };
  /// By the peers' names.
  [[nodiscard]] std::map<std::string, Load> loads() const;
  [[nodiscard]] bool is_live(std::string_view name) const;
  [[nodiscard]] bool is_current(const PeerIdentity& peer) const override;
  [[nodiscard]] PeerStanding standing(std::string_view name) const override;
  [[nodiscard]] bool is_behind(std::string_view name) const override;
  /// Whether the group has, or had, a node of that name.
  [[nodiscard]] bool is_known(std::string_view name) const;
  /// What is not finished, as texts: calls of this node that wait for replies, such as "worker1:
  /// add (3 calls)", calls of others, such as "4 calls of worker1, still being answered here: add
  /// (3 calls), sum", and bytes that have not left, such as "4096 bytes to worker1".
  [[nodiscard]] std::vector<std::string> pending() const;
  /// Whether that is nothing.
  [[nodiscard]] bool is_finished() const;
  /// Whether what there is to send has arrived, but for what waits for a broken connection.
  [[nodiscard]] bool is_sent() const;

  /// Answers the calls of others that have not begun with `error`: they never will.
  void refuse_waiting(const std::exception_ptr& error) const;
  /// Says goodbye to all; their calls end with ShutDown. On the loop if it still runs.
  void close(const std::string& reason);

 private:
  // A session that waits for a connection: who makes its connections tries to have one, the other
  // side only whether the peer is there.
  struct Trial {
    std::shared_ptr<Session> session;
    TimePoint give_up_at;
    std::uint64_t next_try = 0;  // the number of the one that it waits for
    bool trying = false;         // and does not wait
    bool has_connected = false;  // though no handshake came of it yet
    int probes = 0;              // of an accepted session, which found the peer there
  };
  struct Peer {
    PeerInfo info;
    bool member = false;  // the group knows it, or this incarnation
    bool known = false;   // the group has announced it, or one before
    bool lost = false;    // and has not been heard since
    bool gone = false;    // so it says itself, or the group
    bool dead = false;    // so it says itself, or its address
    bool left = false;    // so it says itself
    std::uint64_t sessions_ended = 0;
    std::vector<std::uint64_t> former{};             // the latest incarnations before this one
    std::shared_ptr<Session> current;                // for calls
    std::vector<std::shared_ptr<Session>> sessions;  // all that are open
    std::vector<std::shared_ptr<Session>> broken;    // whose calls wait for the verdict
    std::vector<Trial> trials;
    std::optional<TimePoint> trying_since;  // to have a first connection
    int tries = 0;                          // in vain, one after the other
    TimePoint next_try{};
    std::shared_ptr<PeerLogLimits> log_limits = std::make_shared<PeerLogLimits>();
    bool was_of_no_use = false;  // the last connection brought nothing but the handshake
  };
  using Ended = std::vector<std::function<void()>>;  // what to do when the lock is released

  // With the names of their peers.
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
                     std::size_t index, bool all_refused);
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
  void lose_former(Peer& peer, Ended& ended);
  void check_succession(const Peer& peer, const wire::Hello& hello) const;
  [[nodiscard]] static bool is_ahead_of_group(const Peer& peer);
  void try_later(const Peer& peer, Trial& trial, TimePoint when);
  void try_now(const std::string& name, const std::shared_ptr<Session>& session,
               std::uint64_t number);
  void settle_soon(const Peer& peer, const std::string& why);
  std::shared_ptr<OutgoingCalls::Failed> end_broken(Peer& peer,
                                                    const OutgoingCalls::MakeError& error,
                                                    Guarantee guarantee, Ended& ended);
  void settle_broken(Peer& peer, const std::string& why, Ended& ended);
  void drop_half_open();
  void drop_half_open(const std::shared_ptr<Session>& session, const std::string& why);
  void watch_half_open(TimePoint when);
  void report_unidentified(const std::string& line, LogLevel level = LogLevel::warning);
  void drop_unidentified(std::string_view name);

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
  PeerIdentity self_;  // its rank under the lock

  const std::uint64_t number_;  // of all tables of the process
  /// Counts what may make another session, or none, the one to call a peer through.
  std::atomic<std::uint64_t> sessions_changed_{0};

  mutable std::mutex mutex_;
  std::map<std::string, Peer, std::less<>> peers_;
  // Whose peers are gone, but whose calls are still being answered.
  std::vector<std::pair<std::string, std::weak_ptr<Session>>> departed_;
  struct HalfOpen {
    std::shared_ptr<Session> session;
    TimePoint since;
    bool accepted = false;
  };
  std::vector<HalfOpen> half_open_{};  // the oldest first
  bool half_open_watched_ = false;     // on the loop alone
  std::mt19937_64 random_;
  std::uint64_t tries_ = 0;  // that were planned
  bool closed_ = false;
};

}  // namespace batchrpc
