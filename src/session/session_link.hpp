#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>

#include "batchrpc/call/call_context.hpp"
#include "batchrpc/wire/encoder.hpp"
#include "metrics/node_counters.hpp"
#include "session/connection.hpp"
#include "session/connection_log.hpp"
#include "session/session_host.hpp"

namespace batchrpc {

/// The data that the parts of a session share: the connection, the peer's identity, and the parts
/// of the node that they use. Thread-safe, except set_peer(), which runs on the loop.
class SessionLink {
 public:
  SessionLink(std::shared_ptr<SessionHost> host, std::shared_ptr<Loop> loop,
              std::shared_ptr<WaitContext> context, std::string expected_peer);

  [[nodiscard]] SessionHost& host() const noexcept { return *host_; }
  [[nodiscard]] const SessionParts& parts() const noexcept { return parts_; }
  [[nodiscard]] const NodeOptions& options() const noexcept { return parts().options; }
  /// The node, for codecs (detail::CurrentNode).
  [[nodiscard]] const std::shared_ptr<LocalNode>& node() const noexcept { return node_; }
  [[nodiscard]] const std::shared_ptr<Loop>& loop() const noexcept { return loop_; }
  /// Null: the node's calls are not counted.
  [[nodiscard]] NodeCounters* counters() const noexcept { return counters_; }
  [[nodiscard]] Connection& connection() const noexcept { return *connection_; }
  [[nodiscard]] OutputQueue& output() const noexcept { return connection_->output(); }
  [[nodiscard]] ConnectionLog& log() noexcept { return log_; }
  [[nodiscard]] bool is_forked_copy() const noexcept { return host_->is_forked_copy(); }

  /// Whether there is a connection now on which the peer has said hello.
  [[nodiscard]] bool is_attached() const noexcept {
    return attached_.load(std::memory_order_acquire);
  }
  /// Sets whether there is such a connection. Returns the previous value.
  bool set_attached(bool attached) noexcept {
    return attached_.exchange(attached, std::memory_order_acq_rel);
  }

  /// The name of the peer that this node wants to reach; empty: the peer connected to this node.
  [[nodiscard]] const std::string& expected_peer() const noexcept { return expected_peer_; }
  /// The peer's identity, from its hello. Null before the handshake.
  [[nodiscard]] std::shared_ptr<const PeerIdentity> peer() const;
  /// The same after the handshake. It stays valid for as long as the session exists.
  [[nodiscard]] const std::shared_ptr<const PeerIdentity>& identity() const noexcept {
    return *identity_.load(std::memory_order_acquire);
  }
  void set_peer(std::shared_ptr<const PeerIdentity> peer);
  /// The peer's name, or another description if it is not known, for people.
  [[nodiscard]] std::string peer_name() const;

  /// Sends a frame without payloads. Returns its size in bytes.
  std::uint64_t send(std::span<const Word> frame);
  /// Sends the queued output: now, or when the calling thread's FlushScope ends.
  void flush();

  /// Notifies the delivery hooks of a message that it is sent to the peer.
  void notify_sent(std::span<const std::shared_ptr<DeliveryHook>> hooks, bool as_reply) const;

  /// Throws InvalidArgument if the message is larger than the limits of NodeOptions. `what()` names
  /// it.
  template <class What>
  void check_size(const Encoder& encoder, const What& what) const {
    if (encoder.payloads().empty() && encoder.words().size() <= small_frame_words_) return;
    if (is_too_large(encoder)) refuse_size(encoder, what());
  }
  [[nodiscard]] bool is_too_large(const Encoder& encoder) const;

 private:
  [[noreturn]] void refuse_size(const Encoder& encoder, const std::string& what) const;

  const std::shared_ptr<SessionHost> host_;
  const SessionParts& parts_;  // owned by the host
  const std::shared_ptr<LocalNode> node_;
  const std::shared_ptr<Loop> loop_;
  NodeCounters* const counters_;
  const std::shared_ptr<Connection> connection_;
  const std::string expected_peer_;
  const std::size_t small_frame_words_;  // frames up to this size are surely within the limits
  ConnectionLog log_;
  std::atomic<bool> attached_{false};
  // The identities that the peer has reported, the latest last. Calls borrow them, so all of them
  // stay.
  std::deque<std::shared_ptr<const PeerIdentity>> identities_;
  std::atomic<const std::shared_ptr<const PeerIdentity>*> identity_{nullptr};
};

}  // namespace batchrpc
