#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "session/connection.hpp"
#include "session/incoming_calls.hpp"
#include "session/liveness.hpp"
#include "session/outgoing_calls.hpp"
#include "session/payload_assembler.hpp"
#include "session/session_host.hpp"
#include "session/session_link.hpp"

namespace batchrpc {

/// A session with a peer: calls and replies in both directions, over one connection after the
/// other. The side that made the first connection also makes the others. Until there is one, calls
/// wait. Both sides count their frames, so nothing is lost or delivered twice.
///
/// The session itself handles the handshake, resumption over another connection, the liveness of
/// the peer, and the assembly of frames and payloads. The calls of each direction are OutgoingCalls
/// and IncomingCalls. Owned by shared pointers. Runs on the loop, except the functions marked
/// thread-safe.
class Session final : public FrameSink, public std::enable_shared_from_this<Session> {
 public:
  /// `id`: of a session that this node begins, unique among those and not 0; 0 if the peer begins
  /// it.
  Session(std::shared_ptr<SessionHost> host, std::shared_ptr<Loop> loop,
          std::shared_ptr<WaitContext> context, std::string peer_name, std::uint64_t id);

  /// The calls of this node. Calls may be submitted from the start. Thread-safe.
  [[nodiscard]] OutgoingCalls& outgoing() const noexcept { return *outgoing_; }
  /// The calls of the peer.
  [[nodiscard]] IncomingCalls& incoming() const noexcept { return *incoming_; }
  [[nodiscard]] const Liveness& liveness() const noexcept { return liveness_; }
  [[nodiscard]] Connection& connection() const noexcept { return link_->connection(); }

  /// Starts on a connection that this node has made or accepted. If it has made it, the first or
  /// another one, it says hello.
  void start(std::unique_ptr<Stream> stream, bool accepted);
  /// Resumes over a connection that the peer has made, and on which it has said `hello`.
  void resume(std::unique_ptr<Stream> stream, const wire::Hello& hello);
  /// The group has introduced the peer, whose hello has waited for that.
  void introduced(const wire::Hello& hello);
  /// An attempt to connect has failed.
  void note_failed(const std::string& why);

  /// Closes without a goodbye. Messages that the peer has sent only in part never arrive.
  void close();
  /// Says goodbye and closes.
  void say_goodbye(ErrorCode code, const std::string& reason);
  /// Answers the peer's calls that have not begun with `error`. They never will.
  void refuse_waiting(const std::exception_ptr& error) {
    incoming_->refuse_waiting(error, assembler_.calls());
  }
  /// Called once per ping interval, while open. Returns the number of intervals for which the peer
  /// has been silent.
  int tick();

  /// Asks the peer to acknowledge what it has received. On the loop, while attached.
  void ask_for_acknowledgement() { liveness_.ping(); }

  /// is_open(): whether the peer has ever said hello. is_attached(): whether it has on the present
  /// connection. Thread-safe.
  [[nodiscard]] bool is_open() const noexcept { return open_.load(std::memory_order_acquire); }
  [[nodiscard]] bool is_attached() const noexcept { return link_->is_attached(); }
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  /// The address at which the peer was last reached; empty: the peer connected to this node.
  [[nodiscard]] const std::string& dialled() const noexcept { return dialled_; }
  void set_dialled(std::string address) { dialled_ = std::move(address); }
  /// The number of frames that were sent again over the last connection.
  [[nodiscard]] std::uint64_t sent_again() const noexcept { return sent_again_; }
  /// Whether the last connection was useful: it has brought more than the handshake, or has lasted
  /// for as long as it takes to declare a peer dead.
  [[nodiscard]] bool has_made_progress() const;
  [[nodiscard]] bool was_accepted() const noexcept { return accepted_; }
  /// Whether this node made it to join the group at its address, without a peer in mind.
  [[nodiscard]] bool joins() const noexcept { return !accepted_ && link_->expected_peer().empty(); }
  /// The peer's goodbye, if it has said one.
  [[nodiscard]] const std::optional<wire::Goodbye>& goodbye() const noexcept { return goodbye_; }
  /// The secret by which the peer proves that it is the one that began the session.
  [[nodiscard]] const Secret& peer_secret() const noexcept { return peer_secret_; }
  /// Whether a connection has proved what the session's first one has, if that was by a
  /// certificate.
  [[nodiscard]] bool is_of_same_identity(const Connection& connection) const;
  /// Whether it was closed because the peer broke the protocol.
  [[nodiscard]] bool broke_protocol() const noexcept { return broke_protocol_; }
  /// Null before the handshake. Thread-safe.
  [[nodiscard]] std::shared_ptr<const PeerIdentity> peer() const { return link_->peer(); }
  void set_peer(std::shared_ptr<const PeerIdentity> peer);
  /// Whether more than NodeOptions::limits.max_outstanding_bytes wait for the peer to take them.
  /// Thread-safe.
  [[nodiscard]] bool is_behind() const;

  void on_frame(const wire::FrameView& frame, std::vector<Bytes>& inline_payloads) override;
  void on_dropped_frame(const DroppedFrame& frame) override;
  std::span<std::byte> chunk_target(const wire::FrameHeader& chunk) override;
  void on_dropped_chunk() override;
  void on_chunk(const wire::FrameHeader& chunk) override;
  void on_closed(const std::string& why, bool protocol_error) override;

 private:
  // The reliable frames that have come.
  struct Received {
    std::uint64_t frames = 0;
    std::uint64_t at_start = 0;        // when this connection began
    std::uint64_t unacknowledged = 0;  // the bytes of frames since the last acknowledgement
  };

  void handle_handshake(const wire::FrameView& frame);
  void handle_hello(const wire::Hello& hello);
  void handle_resumed(const wire::Hello& hello);
  [[nodiscard]] wire::Hello own_hello() const;
  void attached();
  [[nodiscard]] std::string impossible_resumption(const wire::Hello& hello) const;
  void refuse(const Error& error);
  [[nodiscard]] bool may_return() const;
  void end(const std::string& why, bool protocol_error);
  void report_broken_protocol(const std::string& why);
  void end_incoming();
  void dispatch_frame(const wire::FrameView& frame, std::vector<Bytes>& inline_payloads);
  void answer_ping(std::uint64_t id);
  void handle_cancel(std::uint64_t call);
  void expect_result(const wire::FrameView& frame);
  void report_without_memory(PayloadAssembler::Whole dropped);
  void count_received(std::uint64_t bytes);
  void acknowledge();
  void note_acknowledged(const wire::FrameHeader& header);

  const std::shared_ptr<SessionLink> link_;
  const std::shared_ptr<OutgoingCalls> outgoing_;
  const std::shared_ptr<IncomingCalls> incoming_;
  Liveness liveness_;
  PayloadAssembler assembler_;
  std::optional<PayloadAssembler::Whole> without_memory_;  // found in chunk_target()
  std::uint64_t id_;
  Secret peer_secret_;
  std::atomic<bool> open_{false};
  bool accepted_ = false;
  bool broke_protocol_ = false;
  bool ended_ = false;
  Received received_;
  std::uint64_t acknowledged_ = 0;  // the frames of this side that the peer has acknowledged
  std::uint64_t sent_again_ = 0;
  std::string dialled_;
  std::optional<wire::Goodbye> goodbye_;
};

}  // namespace batchrpc
