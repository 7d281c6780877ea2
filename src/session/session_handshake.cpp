#include <utility>

#include "base/plain_text.hpp"
#include "batchrpc/base/error.hpp"
#include "call/certified.hpp"
#include "session/session.hpp"

// How a session begins, and how it is resumed over another connection.
namespace batchrpc {

wire::Hello Session::own_hello() const {
  wire::Hello hello = link_->host().own_hello();
  hello.session = id_;
  hello.received = received_.frames;
  hello.resumed = is_open();
  hello.joins = joins();
  const auto known = peer();
  link_->host().address(hello, joins() ? std::string_view()
                               : known ? std::string_view(known->name)
                                       : std::string_view(link_->expected_peer()));
  return hello;
}

void Session::start(std::unique_ptr<Stream> stream, bool accepted) {
  accepted_ = accepted;
  incoming_->belong_to(weak_from_this());
  link_->connection().start(std::move(stream), weak_from_this());
  if (accepted) return;
  link_->output().append_first(wire::hello_frame(own_hello()));
  link_->connection().flush();
}

void Session::resume(std::unique_ptr<Stream> stream, const wire::Hello& hello) {
  if (link_->set_attached(false)) liveness_.broke("the peer opened a new connection");
  link_->connection().start(std::move(stream), weak_from_this());
  if (!link_->output().rewind(hello.received)) {
    const std::string why = impossible_resumption(hello);
    say_goodbye(ErrorCode::bad_message, why);
    end(why, true);
    return;
  }
  link_->output().append_first(wire::hello_frame(own_hello()));
  attached();
  link_->host().session_resumed(*this);
}

// The peer has said hello: frames may be sent.
void Session::attached() {
  received_.at_start = received_.frames;
  received_.unacknowledged = 0;
  liveness_.attached();
  using Kind = ConnectionEvent::Kind;
  sent_again_ = is_open() ? link_->output().frames().unacknowledged() : 0;
  link_->log().add({.kind = is_open() ? Kind::resumed : Kind::connected,
                    .at = liveness_.attached_at(),
                    .count = sent_again_});
  link_->set_attached(true);
  open_.store(true, std::memory_order_release);
  link_->connection().open();
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
  if (!is_plain_text(hello.name) || !is_plain_text(hello.job)) {
    throw BadMessage("a hello whose name or job is not plain text: '" + escaped(hello.name, 255) +
                     "'; it must be UTF-8 without control characters");
  }
  if (const auto proof = link_->connection().proof();
      proof && !proof->covers(hello.name, hello.job)) {
    return refuse(PermissionDenied("a node that is " + proof->identity +
                                   " by its certificate says that it is '" + hello.name +
                                   "' of the job '" + hello.job + "'"));
  }
  if (is_open()) {
    handle_resumed(hello);
  } else {
    handle_hello(hello);
  }
}

void Session::handle_hello(const wire::Hello& hello) {
  const NodeOptions& own = link_->options();
  try {
    if (hello.major != wire::kMajor) {
      throw JoinFailed("protocol version " + std::to_string(hello.major) + "." +
                       std::to_string(hello.minor) + " of " + hello.name +
                       " is not compatible with version " + std::to_string(wire::kMajor) + "." +
                       std::to_string(wire::kMinor) + " of " + own.name);
    }
    if (hello.job != own.job) {
      throw JoinFailed("the job of " + hello.name + " is '" + hello.job + "', that of " + own.name +
                       " is '" + own.job + "' (NodeOptions::job)");
    }
    if (hello.incarnation == 0)
      throw BadMessage("the hello of " + hello.name + " has no incarnation");
    if (!link_->expected_peer().empty() && hello.name != link_->expected_peer()) {
      throw NotFound("expected " + link_->expected_peer() + " at this address, but found " +
                     hello.name);
    }
    if (accepted_) {
      if (hello.session == 0) throw BadMessage("the hello of " + hello.name + " names no session");
      if (const auto known = link_->host().find_session(*this, hello)) {
        known->resume(link_->connection().release(), hello);
        return;
      }
      id_ = hello.session;
    } else if (hello.session != id_ && hello.session != 0) {
      throw BadMessage(hello.name + " answered for a different session");
    }
    if (!accepted_ && hello.resumed && !link_->output().rewind(hello.received)) {
      throw BadMessage(impossible_resumption(hello));
    }
    if (!link_->host().admit(*this, hello)) return;
    peer_secret_ = hello.secret;
  } catch (const Error& error) {
    // The peer learns which node does not know it, or not any more.
    if (accepted_ && error.code() == ErrorCode::unknown)
      link_->output().append_first(wire::hello_frame(link_->host().own_hello()));
    refuse(error);
    return;
  }
  if (accepted_) link_->output().append_first(wire::hello_frame(own_hello()));
  attached();
}

void Session::introduced(const wire::Hello& hello) {
  if (!is_open() && !outgoing_->is_closed()) handle_hello(hello);
}

bool Session::is_of_same_identity(const Connection& connection) const {
  const std::string& identity = peer()->identity;
  const auto proof = connection.proof();
  return !is_certified(identity) || (proof && proof->identity == identity);
}

// Handles the answer to a hello that resumes this session.
void Session::handle_resumed(const wire::Hello& hello) {
  const bool knows_session = hello.resumed && hello.session == id_;
  if (!knows_session || hello.secret != peer_secret_ || !is_of_same_identity(link_->connection())) {
    const bool restarted = hello.incarnation != peer()->incarnation;
    const std::string why = restarted       ? "it was restarted"
                            : knows_session ? "another node answers at its address"
                                            : "it no longer knows the session";
    if (restarted) {
      goodbye_ =
          wire::Goodbye{.code = static_cast<std::uint16_t>(ErrorCode::peer_lost), .reason = why};
    }
    end(why, false);
    return;
  }
  if (!link_->output().rewind(hello.received)) throw BadMessage(impossible_resumption(hello));
  attached();
  link_->host().session_resumed(*this);
}

// The error for a peer that reports more received frames than were sent, or fewer than it has
// acknowledged.
std::string Session::impossible_resumption(const wire::Hello& hello) const {
  return "the peer resumed at frame " + std::to_string(hello.received) + ", but only frames " +
         std::to_string(acknowledged_) + " to " +
         std::to_string(acknowledged_ + link_->output().frames().unacknowledged()) +
         " can be resumed at; the session is closed";
}

void Session::refuse(const Error& error) {
  say_goodbye(error.code(), error.what());
  goodbye_ =
      wire::Goodbye{.code = static_cast<std::uint16_t>(error.code()), .reason = error.what()};
  end(error.what(), false);
}

}  // namespace batchrpc
