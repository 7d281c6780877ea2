#include <algorithm>

#include "batchrpc/base/error.hpp"
#include "session/flush_scope.hpp"
#include "session/session.hpp"

// How a session begins, goes on over another connection, and ends.
namespace batchrpc {
namespace {

// So much the peer keeps at most of what it has sent, when nothing goes back by which it is
// acknowledged; and what is left until the next ping.
constexpr std::uint64_t kAcknowledgeBytes = 64 * 1024;

}  // namespace

wire::Hello Session::own_hello() const {
  wire::Hello hello = host_->own_hello();
  hello.session = id_;
  hello.received = received_;
  hello.resumed = is_open();
  return hello;
}

void Session::start(std::unique_ptr<Stream> stream, bool accepted) {
  accepted_ = accepted;
  connection_->start(std::move(stream), weak_from_this());
  if (accepted) return;
  connection_->output().append_first(wire::hello_frame(own_hello()));
  connection_->flush();
}

void Session::resume(std::unique_ptr<Stream> stream, const wire::Hello& hello) {
  if (attached_.exchange(false, std::memory_order_acq_rel)) {
    note_broken("the peer has made another one");
  }
  connection_->start(std::move(stream), weak_from_this());
  if (!connection_->output().rewind(hello.received)) {
    const std::string why = "its session goes on where it never was";
    say_goodbye(ErrorCode::bad_message, why);
    end(why, true);
    return;
  }
  connection_->output().append_first(wire::hello_frame(own_hello()));
  attached();
  host_->session_resumed(*this);
}

// The peer has said hello: frames may go.
void Session::attached() {
  received_at_start_ = received_;
  unacknowledged_ = 0;
  silent_ticks_ = 0;
  heard_at_ = attached_at_ = loop_->now();
  using Kind = ConnectionEvent::Kind;
  sent_again_ = is_open() ? connection_->output().unacknowledged() : 0;
  note({.kind = is_open() ? Kind::resumed : Kind::connected,
        .at = attached_at_,
        .count = sent_again_});
  attached_.store(true, std::memory_order_release);
  open_.store(true, std::memory_order_release);
  connection_->open();
}

void Session::handle_handshake(const wire::FrameView& frame) {
  if (frame.header.kind == wire::FrameKind::goodbye) {
    goodbye_ = wire::read_goodbye(frame);
    return;
  }
  if (frame.header.kind != wire::FrameKind::hello) {
    throw BadMessage("the first frame of a connection is not a hello");
  }
  const wire::Hello hello = wire::read_hello(frame);
  if (hello.name.empty() || hello.name.size() > 255) throw BadMessage("a hello without a name");
  if (is_open()) {
    handle_resumed(hello);
  } else {
    handle_hello(hello);
  }
}

void Session::handle_hello(const wire::Hello& hello) {
  try {
    if (hello.major != wire::kMajor) {
      throw JoinFailed("protocol version " + std::to_string(hello.major) + "." +
                       std::to_string(hello.minor) + " of " + hello.name +
                       " does not go with version " + std::to_string(wire::kMajor) + "." +
                       std::to_string(wire::kMinor) + " here");
    }
    if (hello.job != host_->options().job) {
      throw JoinFailed("the job of " + hello.name + " is '" + hello.job + "', that of " +
                       host_->options().name + " is '" + host_->options().job +
                       "' (NodeOptions::job)");
    }
    if (!expected_peer_.empty() && hello.name != expected_peer_) {
      throw NotFound("where " + expected_peer_ + " was, there is now " + hello.name);
    }
    if (accepted_) {
      if (hello.session == 0) throw BadMessage("the hello of " + hello.name + " names no session");
      if (const auto known = host_->find_session(*this, hello)) {
        known->resume(connection_->release(), hello);
        return;
      }
      if (hello.resumed) {  // and told who does not know it
        connection_->output().append_first(wire::hello_frame(host_->own_hello()));
        throw Unknown("node " + host_->options().name + " does not know this session any more");
      }
      id_ = hello.session;
    } else if (hello.session != id_) {
      throw BadMessage(hello.name + " answers for another session than the one that has begun");
    }
    if (hello.resumed && !connection_->output().rewind(hello.received)) {
      throw BadMessage("a session goes on where it never was");
    }
    host_->admit(*this, hello);
  } catch (const Error& error) {
    refuse(error);
    return;
  }
  if (accepted_) connection_->output().append_first(wire::hello_frame(own_hello()));
  attached();
}

// The answer to a hello that goes on with this session.
void Session::handle_resumed(const wire::Hello& hello) {
  if (!hello.resumed || hello.session != id_) {
    const bool restarted = hello.incarnation != peer()->incarnation;
    const std::string why =
        restarted ? "it was restarted" : "it does not know the session any more";
    if (restarted) {
      goodbye_ =
          wire::Goodbye{.code = static_cast<std::uint16_t>(ErrorCode::peer_lost), .reason = why};
    }
    end(why, false);
    return;
  }
  if (!connection_->output().rewind(hello.received)) {
    throw BadMessage("a session goes on where it never was");
  }
  attached();
  host_->session_resumed(*this);
}

void Session::refuse(const Error& error) {
  say_goodbye(error.code(), error.what());
  goodbye_ =
      wire::Goodbye{.code = static_cast<std::uint16_t>(error.code()), .reason = error.what()};
  end(error.what(), false);
}

// --- what has arrived

void Session::count_received(std::uint64_t bytes) {
  connection_->output().set_received(++received_);
  unacknowledged_ += bytes;
  if (unacknowledged_ < kAcknowledgeBytes) return;
  unacknowledged_ = 0;
  connection_->output().append_acknowledgement(
      wire::plain_frame({.kind = wire::FrameKind::acknowledge}));
  flush();
}

void Session::note_acknowledged(const wire::FrameHeader& header) {
  if (header.acknowledged <= acknowledged_) return;
  acknowledged_ = header.acknowledged;
  if (!connection_->output().acknowledge(acknowledged_)) {
    throw BadMessage("an acknowledgement of what was never sent");
  }
  serve_credit_soon();
}

bool Session::has_made_progress() const {
  return received_ > received_at_start_ ||
         loop_->now() - attached_at_ >= host_->options().dead_after;
}

TimePoint Session::heard_at() const {
  return std::max(heard_at_, loop_->now() - (silent_ticks_ + 1) * host_->options().ping_after);
}

// --- the end of a connection, and of the session

// Whether another connection may take the place of one that has ended.
bool Session::may_return() const {
  if (goodbye_ || host_->is_forked_copy()) return false;
  return is_open() || (!accepted_ && !expected_peer_.empty());
}

void Session::on_closed(const std::string& why, bool protocol_error) {
  const auto self = shared_from_this();
  if (attached_.exchange(false, std::memory_order_acq_rel)) {
    note_broken(why);
  } else if (!accepted_) {
    note_failed(why);
  }
  if (!protocol_error && may_return() && !is_closed()) {
    host_->session_detached(self, why);
  } else {
    end(why, protocol_error);
  }
}

void Session::end(const std::string& why, bool protocol_error) {
  const auto self = shared_from_this();
  attached_.store(false, std::memory_order_release);
  connection_->close();
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    closed_ = true;
  }
  if (protocol_error) {
    broke_protocol_ = true;
    if (counters_ != nullptr) {
      counters_->errors.add({.kind = ErrorRecord::Kind::connection,
                             .at = loop_->now(),
                             .code = ErrorCode::bad_message,
                             .peer = peer_name(),
                             .text = why});
    }
    // Who joins tries again and again, and warns of it once: Group.
    const bool joining = !accepted_ && !is_open() && expected_peer_.empty();
    host_->log_limits().broke_protocol.write(
        host_->log(), joining ? LogLevel::debug : LogLevel::warning, loop_->now(),
        "dropped " + connection_->description() + ": " + why + connection_->offence());
  }
  host_->session_closed(self, why);
  end_incoming();
}

}  // namespace batchrpc
