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

/// A conversation with a peer: calls and replies in both directions, over one connection after the
/// other. The side that made the first connection makes the others, too; until there is one, calls
/// wait. Both sides count their frames, so nothing is lost and nothing comes twice.
///
/// The session itself keeps the handshake, the resumption over another connection, the liveness of
/// the peer, and the assembly of frames and payloads. The calls of each direction are
/// OutgoingCalls and IncomingCalls. Owned by shared pointers. Runs on the loop, but for what says
/// that it is thread-safe.
class Session final : public FrameSink, public std::enable_shared_from_this<Session> {
 public:
  /// `id`: of a session that this node begins, unique among those and not 0; 0 where the peer
  /// begins it.
  Session(std::shared_ptr<SessionHost> host, std::shared_ptr<Loop> loop,
          std::shared_ptr<WaitContext> context, std::string peer_name, std::uint64_t id);

  /// The calls of this node's. Calls may be submitted from the start. Thread-safe.
  [[nodiscard]] OutgoingCalls& outgoing() const noexcept { return *outgoing_; }
  /// The calls of the peer's.
  [[nodiscard]] IncomingCalls& incoming() const noexcept { return *incoming_; }
  [[nodiscard]] const Liveness& liveness() const noexcept { return liveness_; }
  [[nodiscard]] Connection& connection() const noexcept { return link_->connection(); }

  /// Takes the connection that this node has made, the first or another one, or has accepted; says
  /// hello in the first case.
  void start(std::unique_ptr<Stream> stream, bool accepted);
  /// Goes on over a connection that the peer has made, and on which it has said `hello`.
  void resume(std::unique_ptr<Stream> stream, const wire::Hello& hello);
  /// An attempt to connect has failed.
  void note_failed(const std::string& why);

  /// Closes without a word: what the peer has sent in part never comes.
  void close();
  /// Says goodbye and closes.
  void say_goodbye(ErrorCode code, const std::string& reason);
  /// Answers the peer's calls that have not begun with `error`: they never will.
  void refuse_waiting(const std::exception_ptr& error) {
    incoming_->refuse_waiting(error, assembler_.calls());
  }
  /// Once a ping interval, while open. Returns for how many intervals the peer has been silent.
  int tick();

  /// Whether the peer has once said hello; and whether there is a connection now on which it has.
  /// Thread-safe.
  [[nodiscard]] bool is_open() const noexcept { return open_.load(std::memory_order_acquire); }
  [[nodiscard]] bool is_attached() const noexcept { return link_->is_attached(); }
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  /// The address at which the peer was last reached; empty: it came by itself.
  [[nodiscard]] const std::string& dialled() const noexcept { return dialled_; }
  void set_dialled(std::string address) { dialled_ = std::move(address); }
  /// How many frames were sent again over the last connection.
  [[nodiscard]] std::uint64_t sent_again() const noexcept { return sent_again_; }
  /// Whether the last connection was of use: it has brought more than the handshake, or has held
  /// for as long as makes a peer dead.
  [[nodiscard]] bool has_made_progress() const;
  [[nodiscard]] bool was_accepted() const noexcept { return accepted_; }
  /// The peer's goodbye, if it has said one.
  [[nodiscard]] const std::optional<wire::Goodbye>& goodbye() const noexcept { return goodbye_; }
  /// Whether it was closed for what the peer sent.
  [[nodiscard]] bool broke_protocol() const noexcept { return broke_protocol_; }
  /// Null before the handshake. Thread-safe.
  [[nodiscard]] std::shared_ptr<const PeerIdentity> peer() const { return link_->peer(); }
  void set_peer(std::shared_ptr<const PeerIdentity> peer);
  /// Whether the peer has left more untaken than NodeOptions::max_outstanding_bytes. Thread-safe.
  [[nodiscard]] bool is_behind() const;

  void on_frame(const wire::FrameView& frame, std::vector<Bytes>& inline_payloads) override;
  std::span<std::byte> chunk_target(const wire::FrameHeader& chunk) override;
  void on_chunk(const wire::FrameHeader& chunk) override;
  void on_closed(const std::string& why, bool protocol_error) override;

 private:
  // The reliable frames that have come.
  struct Received {
    std::uint64_t frames = 0;
    std::uint64_t at_start = 0;        // of this connection
    std::uint64_t unacknowledged = 0;  // bytes of frames since one was last acknowledged
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
  void count_received(std::uint64_t bytes);
  void note_acknowledged(const wire::FrameHeader& header);

  const std::shared_ptr<SessionLink> link_;
  const std::shared_ptr<OutgoingCalls> outgoing_;
  const std::shared_ptr<IncomingCalls> incoming_;
  Liveness liveness_;
  PayloadAssembler assembler_;
  std::uint64_t id_;
  std::atomic<bool> open_{false};
  bool accepted_ = false;
  bool broke_protocol_ = false;
  Received received_;
  std::uint64_t acknowledged_ = 0;  // frames of this side, by the peer
  std::uint64_t sent_again_ = 0;
  std::string dialled_;
  std::optional<wire::Goodbye> goodbye_;
};

}  // namespace batchrpc
