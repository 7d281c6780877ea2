#include "session/session.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "transport/end_in_turns.hpp"

// How a session handles incoming frames, and how it ends.
namespace batchrpc {
namespace {

// The most bytes received without an acknowledgement, if no other frame is sent that carries one.
// The peer keeps those bytes. The rest is acknowledged at the next ping.
constexpr std::uint64_t kAcknowledgeBytes = 64 * 1024;

// Whether all payloads have come. Empty ones never come.
bool are_there(const wire::FrameView& frame, std::vector<Bytes>& payloads) {
  const auto sizes = frame.payload_sizes;
  if (sizes.empty() || payloads.size() == sizes.size()) return true;
  if (std::any_of(sizes.begin(), sizes.end(), [](std::uint64_t size) { return size > 0; })) {
    return false;
  }
  payloads.resize(sizes.size());
  return true;
}

// Runs a step of cleaning up. There may be no memory for what it reports. It is then tried again,
// since the first try has freed some, and left out in the end: the other steps and the node go on.
template <class Step>
void clean_up(const Step& step) {
  for (int tries = 0; tries < 2; ++tries) {
    try {
      step();
      return;
    } catch (const std::bad_alloc&) {  // NOLINT
    }
  }
}

}  // namespace

Session::Session(std::shared_ptr<SessionHost> host, std::shared_ptr<Loop> loop,
                 std::shared_ptr<WaitContext> context, std::string peer_name, std::uint64_t id)
    : link_(std::make_shared<SessionLink>(std::move(host), std::move(loop), std::move(context),
                                          std::move(peer_name))),
      outgoing_(std::make_shared<OutgoingCalls>(link_)),
      incoming_(std::make_shared<IncomingCalls>(link_)),
      liveness_(*link_),
      assembler_(link_->options().limits.max_payload_bytes, link_->parts().payload_memory),
      id_(id) {}

void Session::set_peer(std::shared_ptr<const PeerIdentity> peer) {
  outgoing_->set_peer_name(peer->name);
  link_->set_peer(std::move(peer));
}

// --- frames

void Session::note_acknowledged(const wire::FrameHeader& header) {
  if (header.acknowledged <= acknowledged_) return;
  acknowledged_ = header.acknowledged;
  if (!link_->output().acknowledge(acknowledged_)) {
    throw BadMessage("the peer acknowledged frame " + std::to_string(acknowledged_) +
                     ", which was never sent");
  }
  outgoing_->serve_credit_soon();
}

void Session::count_received(std::uint64_t bytes) {
  link_->output().set_received(++received_.frames);
  received_.unacknowledged += bytes;
  if (received_.unacknowledged >= kAcknowledgeBytes) acknowledge();
}

void Session::acknowledge() {
  received_.unacknowledged = 0;
  link_->output().append_acknowledgement(wire::plain_frame({.kind = wire::FrameKind::acknowledge}));
  link_->flush();
}

void Session::on_frame(const wire::FrameView& frame, std::vector<Bytes>& inline_payloads) {
  if (!is_attached()) return handle_handshake(frame);
  note_acknowledged(frame.header);
  if (wire::is_reliable(frame.header.kind)) {
    count_received(frame.words.size_bytes() + bytes_of(inline_payloads));
  }
  dispatch_frame(frame, inline_payloads);
}

void Session::dispatch_frame(const wire::FrameView& frame, std::vector<Bytes>& inline_payloads) {
  using wire::FrameKind;
  switch (frame.header.kind) {
    case FrameKind::define:
      return incoming_->define(frame);
    case FrameKind::call:
      if (!are_there(frame, inline_payloads)) return incoming_->expect(frame, assembler_);
      return incoming_->take(frame, inline_payloads);
    case FrameKind::result:
      if (!are_there(frame, inline_payloads)) return expect_result(frame);
      return outgoing_->take_result(frame, inline_payloads);
    case FrameKind::error:
      return outgoing_->take_error(frame);
    case FrameKind::cancel:
      return handle_cancel(frame.header.id);
    case FrameKind::credit:
      return outgoing_->take_credit(frame.header);
    case FrameKind::ping:
      return answer_ping(frame.header.id);
    case FrameKind::pong:
      return liveness_.pong(frame.header.id);
    case FrameKind::acknowledge:  // its header does that
      return;
    case FrameKind::goodbye:
      goodbye_ = wire::read_goodbye(frame);
      return;
    case FrameKind::hello:
      throw BadMessage("a second hello");
    case FrameKind::chunk:  // handled by chunk_target()
      break;
  }
  throw BadMessage("a frame of the unknown kind " +
                   std::to_string(static_cast<unsigned>(frame.header.kind)));
}

// Queued frames answer a ping as well. So nothing accumulates for a peer that pings and does not
// read.
void Session::answer_ping(std::uint64_t id) {
  if (link_->output().queued_bytes() == 0) {
    link_->send(wire::plain_frame({.kind = wire::FrameKind::pong, .id = id}));
  } else {
    link_->flush();
  }
}

// The call may still be coming in, or be at any later stage.
void Session::handle_cancel(std::uint64_t call) {
  if (const auto dropped = assembler_.drop(call)) {
    incoming_->give_up(*dropped);
  } else if (!assembler_.end_refusal(call)) {
    return incoming_->cancel(call);
  }
  acknowledge();  // until then the caller keeps the payloads, of which some have come
}

// Makes room for the payloads of a result. They go to the memory that the caller has chosen.
void Session::expect_result(const wire::FrameView& frame) {
  if (assembler_.is_too_large(frame)) {
    return outgoing_->lose_reply(frame.header.id, frame.words.size_bytes(),
                                 {NotTaken::payloads, PayloadAssembler::size_of(frame)});
  }
  auto target = outgoing_->target_of_result(frame.header.id);
  if (target) assembler_.begin(frame, std::nullopt, *std::move(target));  // else chunks are dropped
}

std::span<std::byte> Session::chunk_target(const wire::FrameHeader& chunk) {
  if (!is_attached()) throw BadMessage("a chunk came before the hello");
  note_acknowledged(chunk);
  std::span<std::byte> room;
  try {
    room = assembler_.room_for(chunk);
  } catch (const std::bad_alloc&) {
    without_memory_ = assembler_.refuse_rest(chunk);
    room = assembler_.room_for(chunk);
  }
  if (room.empty()) count_received(chunk.value);  // it is dropped, whether it comes or not
  return room;
}

void Session::on_dropped_chunk() {
  if (!without_memory_) return;
  auto dropped = *std::move(without_memory_);
  without_memory_.reset();
  report_without_memory(std::move(dropped));
}

void Session::on_chunk(const wire::FrameHeader& chunk) {
  count_received(chunk.value);
  std::optional<PayloadAssembler::Whole> whole;
  try {
    whole = assembler_.finish(chunk);
  } catch (const std::bad_alloc&) {
    if (auto dropped = assembler_.refuse_rest(chunk)) report_without_memory(*std::move(dropped));
    return;
  }
  if (!whole) return;
  const wire::FrameView frame = wire::parse_frame(whole->words);
  if (frame.header.kind == wire::FrameKind::result) {
    outgoing_->take_result(frame, whole->payloads);
  } else {
    incoming_->take_whole(*std::move(whole));
  }
}

// Fails a call for whose payloads there was no memory. The rest of them is dropped.
void Session::report_without_memory(PayloadAssembler::Whole dropped) {
  dropped.payloads.clear();
  const wire::FrameView frame = wire::parse_frame(dropped.words);
  const NotTaken why{NotTaken::memory, PayloadAssembler::size_of(frame)};
  if (frame.header.kind == wire::FrameKind::result)
    return outgoing_->lose_reply(frame.header.id, frame.words.size_bytes(), why);
  incoming_->refuse_untaken(frame.header, frame.words.size_bytes(), why);
  incoming_->give_up(dropped);
}

void Session::on_dropped_frame(const DroppedFrame& frame) {
  if (!is_attached()) throw BadMessage("a large frame came before the hello");
  note_acknowledged(frame.header);
  count_received(frame.bytes);
  const NotTaken why{frame.no_memory ? NotTaken::memory : NotTaken::frame, frame.bytes};
  if (frame.header.kind != wire::FrameKind::call)
    return outgoing_->lose_reply(frame.header.id, frame.bytes, why);
  assembler_.refuse(frame.header.id, frame.payload_sizes);
  incoming_->refuse_untaken(frame.header, frame.bytes, why);
}

int Session::tick() {
  const int silent = liveness_.tick();
  link_->output().trim();
  outgoing_->forget_promised_credit();
  return silent;
}

bool Session::has_made_progress() const {
  return received_.frames > received_.at_start ||
         link_->loop()->now() - liveness_.attached_at() >= link_->options().liveness.dead_after;
}

bool Session::is_behind() const {
  const OutputQueue& output = link_->output();
  return output.queued_bytes() + output.ungranted_bytes() + output.kept_bytes() >
         link_->options().limits.max_outstanding_bytes;
}

// --- the end of a connection, and of the session

void Session::note_failed(const std::string& why) {
  link_->log().add({.kind = ConnectionEvent::Kind::failed, .at = link_->loop()->now(), .why = why});
}

// Whether another connection may replace one that has ended.
bool Session::may_return() const {
  if (goodbye_ || link_->is_forked_copy()) return false;
  return is_open() || (!accepted_ && !link_->expected_peer().empty());
}

void Session::on_closed(const std::string& why, bool protocol_error) {
  if (ended_) return;
  const auto self = shared_from_this();
  if (link_->set_attached(false)) {
    clean_up([&] { liveness_.broke(why); });
  } else if (!accepted_) {
    clean_up([&] { note_failed(why); });
  }
  if (!protocol_error && may_return() && !outgoing_->is_closed()) {
    clean_up([&] { link_->host().session_detached(self, why); });
  } else {
    end(why, protocol_error);
  }
}

void Session::end(const std::string& why, bool protocol_error) {
  const auto self = shared_from_this();
  link_->set_attached(false);
  link_->connection().close();
  if (std::exchange(ended_, true) || outgoing_->is_closed()) return;
  if (protocol_error) clean_up([&] { report_broken_protocol(why); });
  // The host closes the calls when it knows whether the peer has left: see KeptByCall::not_sent().
  clean_up([&] { link_->host().session_closed(self, why); });
  outgoing_->close();
  end_incoming();
}

void Session::report_broken_protocol(const std::string& why) {
  broke_protocol_ = true;
  const TimePoint now = link_->loop()->now();
  if (link_->counters() != nullptr) {
    link_->counters()->errors.add({.kind = ErrorRecord::Kind::connection,
                                   .at = now,
                                   .code = ErrorCode::bad_message,
                                   .peer = link_->peer_name(),
                                   .text = why});
  }
  // A node that joins retries many times, and warns of it once: Group.
  const bool joining = !accepted_ && !is_open() && link_->expected_peer().empty();
  link_->parts().log_limits.broke_protocol.write(
      link_->parts().log, joining ? LogLevel::debug : LogLevel::warning, now,
      "dropped " + link_->connection().description() + ": " + why + link_->connection().offence());
}

void Session::say_goodbye(ErrorCode code, const std::string& reason) {
  const auto frame =
      wire::goodbye_frame({.code = static_cast<std::uint16_t>(code), .reason = reason});
  if (is_attached()) {
    link_->output().append(frame, 0, false, {});
  } else {
    link_->output().append_first(frame);
  }
  close();
}

void Session::close() {
  link_->set_attached(false);
  link_->connection().close();
  end_incoming();
}

void Session::end_incoming() {
  detail::end_in_turns(*link_->loop(),
                       [self = shared_from_this()] { return self->assembler_.drop_some(); });
  incoming_->close();
}

}  // namespace batchrpc
