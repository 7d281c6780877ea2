#include <algorithm>
#include <system_error>

#include "batchrpc/base/error.hpp"
#include "node/peer_table.hpp"

// How a peer table makes connections: the addresses in turn, again after growing pauses, until the
// peer counts as dead.
namespace batchrpc {

std::shared_ptr<Session> PeerTable::begin_connecting(Peer& peer, Duration delay) {
  peer.current = make_session(peer.info.name);
  peer.info.state = PeerState::connecting;
  const TimePoint now = environment_.loop->now();
  if (!peer.trying_since) peer.trying_since = now;
  try_later(now + delay, peer.info.name, peer.current);
  return peer.current;
}

// Weak: the loop, which may not be run any more, keeps nobody alive.
void PeerTable::try_later(TimePoint when, const std::string& name,
                          const std::shared_ptr<Session>& session) {
  environment_.loop->schedule(when, [this, weak_host = std::weak_ptr(environment_.host()), name,
                                     weak_session = std::weak_ptr(session)] {
    const auto host = weak_host.lock();
    const auto waiting = weak_session.lock();
    if (host && waiting) try_addresses(name, waiting, 0, true);
  });
}

void PeerTable::try_addresses(const std::string& name, const std::shared_ptr<Session>& session,
                              std::size_t index, bool all_refused) {
  std::string address;
  TimePoint give_up_at;
  {
    const std::lock_guard lock(mutex_);
    const Peer* peer = find(name);
    if (closed_ || peer == nullptr || peer->current != session) return;
    if (index < peer->info.addresses.size()) address = peer->info.addresses[index];
    give_up_at = *peer->trying_since + options_.dead_after;
  }
  if (address.empty()) {
    connect_failed(name, session, all_refused,
                   index == 0    ? "it has no address that can be reached from here"
                   : all_refused ? "its address refuses connections"
                                 : "its address cannot be reached");
    return;
  }
  // Weak: what waits is the transport's, which is ours. Either lives as long as it is of interest.
  environment_.transport->connect(Address::parse(address), give_up_at,
                                  [this, weak_host = std::weak_ptr(environment_.host()), name,
                                   weak_session = std::weak_ptr(session), index, all_refused](
                                      std::unique_ptr<Stream> stream, std::error_code error) {
                                    const auto host = weak_host.lock();
                                    const auto waiting = weak_session.lock();
                                    if (!host || !waiting) return;
                                    if (stream) {
                                      {
                                        const std::lock_guard lock(mutex_);
                                        if (closed_) return;
                                        half_open_.push_back({waiting, environment_.loop->now()});
                                      }
                                      waiting->start(std::move(stream), false);
                                      return;
                                    }
                                    const bool refused = error == std::errc::connection_refused;
                                    try_addresses(name, waiting, index + 1, all_refused && refused);
                                  });
}

std::shared_ptr<Session> PeerTable::connect_to(const Address& address) {
  auto session = make_session({});
  {
    const std::lock_guard lock(mutex_);
    half_open_.push_back({session, environment_.loop->now()});
  }
  environment_.transport->connect(
      address, environment_.loop->now() + options_.dead_after,
      [weak_host = std::weak_ptr(environment_.host()), weak_session = std::weak_ptr(session)](
          std::unique_ptr<Stream> stream, std::error_code error) {
        const auto host = weak_host.lock();
        const auto waiting = weak_session.lock();
        if (!host || !waiting || waiting->is_closed()) return;
        if (stream) {
          waiting->start(std::move(stream), false);
        } else {
          waiting->on_closed(error.message(), false);
        }
      });
  return session;
}

void PeerTable::retire(const std::shared_ptr<Session>& session, const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(half_open_, [&](const HalfOpen& entry) { return entry.session == session; });
    for (auto& [name, peer] : peers_) {
      std::erase(peer.sessions, session);
      if (peer.current == session) {
        peer.current = peer.sessions.empty() ? nullptr : peer.sessions.front();
        ++sessions_changed_;
      }
    }
    std::erase_if(peers_, [](const auto& entry) {
      return !entry.second.member && entry.second.sessions.empty() && !entry.second.current;
    });
  }
  session->say_goodbye(ErrorCode::shut_down, why);
}

// An address was tried in vain: try again for a while, unless nobody listens there any more.
void PeerTable::connect_failed(const std::string& name, const std::shared_ptr<Session>& session,
                               bool refused, const std::string& why) {
  Ended ended;
  {
    const std::lock_guard lock(mutex_);
    Peer* peer = find(name);
    if (closed_ || peer == nullptr || peer->current != session) return;
    const TimePoint now = environment_.loop->now();
    const bool may_come_back = !refused && now - *peer->trying_since < options_.dead_after;
    if (may_come_back) {
      try_later(now + pause(peer->tries++), name, session);
      return;
    }
    lose(*peer, why, ended);
    drop_stranger(name);
  }
  run(ended);
}

// Grows by 1.6 from 100 ms, by up to a fifth more or less, so that many who lost one peer do not
// return as one.
Duration PeerTable::pause(int tries) {
  double milliseconds = 100;
  for (int i = 0; i < std::min(tries, 10); ++i)
    milliseconds *= 1.6;
  milliseconds *= std::uniform_real_distribution(0.8, 1.2)(random_);
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double, std::milli>(std::min(milliseconds, 10'000.0)));
}

}  // namespace batchrpc
