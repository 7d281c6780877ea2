#include "node/group_membership.hpp"

#include <algorithm>
#include <utility>

#include "base/time.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/call/caller.hpp"
#include "call/certified.hpp"
#include "call/duration_text.hpp"
#include "node/group_functions.hpp"
#include "node/node_core.hpp"
#include "node/options_check.hpp"

namespace batchrpc {

using namespace group_functions;

namespace {

auto through(Session& session) {
  return [&session](const detail::FunctionKey& key, detail::OutgoingOptions&& how, Encoder& encoder,
                    detail::ReplyHandler&& handler) {
    session.outgoing().submit(key, std::move(how), encoder, std::move(handler));
  };
}

}  // namespace

GroupMembership::GroupMembership(NodeCore& core)
    : core_(core),
      joining_(std::make_shared<Promise<void>>()),
      address_(core.options()),
      pace_(core.incarnation()) {}

Future<void> GroupMembership::join() {
  auto future = joining_->get_future();
  pace_.set_deadline(after(core_.loop()->now(), core_.options().join_timeout));
  core_.loop()->post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->try_root();
  });
  return future;
}

void GroupMembership::try_root() {
  const NodeOptions& options = core_.options();
  const std::string address = address_.choose();
  if (address.empty()) {
    retry("the file " + join_file(options) + " does not exist, or only another user may read it");
    return;
  }
  std::shared_ptr<Session> session;
  try {
    session = core_.peers().connect_to(
        core_.addresses().transports().parse(address, AddressUse::connect));
  } catch (const Error& error) {
    if (joins_by_file(options)) {  // the root may still write it
      return retry("the file " + join_file(options) + " does not name a root: " + error.what());
    }
    fail_to_join(std::make_exception_ptr(JoinFailed(error.what())));
    return;
  }
  address_.set_tried(address);
  detail::OutgoingOptions how;
  how.timeout = pace_.time_left(core_.loop()->now());
  detail::send_call<Member>(through(*session), key_of<Member>(kWho), std::move(how))
      .then([weak = weak_from_this(), session](const Result<Member>& root) {
        if (const auto self = weak.lock()) self->root_answered(session, root);
      });
}

void GroupMembership::give_up() {
  if (!joining_->pending()) return;
  joining_->set_error(JoinFailed("the node was destroyed before it had joined"));
}

void GroupMembership::fail_to_join(const std::exception_ptr& error) {
  if (!returning_) {
    joining_->set_error(error);
    return;
  }
  refused_return(describe(error));
}

void GroupMembership::retry(const std::string& why) {
  if (returning_) return return_again();
  const TimePoint now = core_.loop()->now();
  if (pace_.is_over(now)) {
    const std::string& tried = address_.tried();
    joining_->set_error(std::make_exception_ptr(JoinFailed(
        "could not join the root at " + core_.options().join +
        (tried.empty() || tried == core_.options().join ? "" : ", which refers to " + tried) +
        ", within " + text_of(core_.options().join_timeout) + " (" + why +
        "); check that rank 0 was started with this address, and with the same token or "
        "authority")));
    return;
  }
  try_root_at(pace_.after_silence(now));
}

void GroupMembership::try_root_at(TimePoint when) {
  core_.loop()->schedule(when, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->try_root();
  });
}

void GroupMembership::refused(const std::string& why) {
  if (returning_) return refused_return(why);
  const Duration patience = JoinPace::patience(core_.options().liveness.ping_after);
  if (const auto when = pace_.after_refusal(core_.loop()->now(), patience)) {
    try_root_at(*when);
  } else {
    joining_->set_error(JoinFailed(why));
  }
}

void GroupMembership::root_did_not_answer(const Session& session, const Result<Member>& root) {
  const auto& goodbye = session.goodbye();
  const auto said = [&goodbye](ErrorCode code) {
    return goodbye && goodbye->code == static_cast<std::uint16_t>(code);
  };
  if (said(ErrorCode::join_failed) || said(ErrorCode::permission_denied)) {
    fail_to_join(std::make_exception_ptr(JoinFailed("refused by the root: " + goodbye->reason)));
    return;
  }
  if (said(ErrorCode::overloaded)) {
    refused("refused by the root: " + goodbye->reason);
    return;
  }
  if (session.broke_protocol() && address_.is_to_be_warned_of()) {
    core_.log().warning("dropped " + address_.tried() + ", where the root was expected: " +
                        root.message() + session.connection().offence());
  }
  address_.forget_nearer();
  if (root.code() != ErrorCode::timed_out) failure_ = root.message();
  retry(failure_.empty() ? "no batchrpc node answers there" : failure_);
}

void GroupMembership::root_answered(const std::shared_ptr<Session>& session,
                                    const Result<Member>& root) {
  if (is_done()) return;  // it has returned by another connection
  if (!root) {
    root_did_not_answer(*session, root);
    return;
  }
  const std::shared_ptr<const PeerIdentity> peer = session->peer();
  if (root->name != peer->name || !may_be_root(*peer)) {
    core_.peers().retire(session, "it is not the root of its group");
    return refused(root->name != peer->name
                       ? "the node at " + address_.tried() + " is " + peer->name +
                             " by its hello, but says that it is " + root->name
                       : "the node at " + address_.tried() + " is " + peer->identity +
                             ", but the root of this group is " + root_identity_);
  }
  const PeerIdentity as_peer{
      .name = root->name, .rank = root->rank, .incarnation = root->incarnation};
  if (returning_ && !is_forgotten_ && core_.peers().is_current(as_peer)) {  // it was only cut off
    root_is_back();
    check_members(as_peer);
    return;
  }
  try {
    core_.addresses().listening().listen_for_peers(session->connection().local_address());
  } catch (...) {
    fail_to_join(std::current_exception());
    return;
  }
  // Nodes use the best address that they share, whatever the address by which they joined.
  if (address_.takes_nearer()) {
    const std::string better = core_.addresses().better(*root, address_.tried());
    if (!better.empty()) {
      address_.use_nearer(better);
      core_.peers().retire(session, "it reconnects through " + better);
      try_root();
      return;
    }
  }
  ask_to_join(session);
}

// A certificate names a node. So another node that listens at the address of a root that has ended
// does not become the root. By a Unix socket, it has the same user as this node.
bool GroupMembership::may_be_root(const PeerIdentity& peer) const {
  const bool both = is_certified(root_identity_) && is_certified(peer.identity);
  return !both || peer.identity == root_identity_;
}

void GroupMembership::ask_to_join(const std::shared_ptr<Session>& session) {
  // The call may take longer than the root's own time-out, whose error names the missing ranks.
  detail::OutgoingOptions how;
  how.timeout = sum(core_.options().join_timeout, core_.options().liveness.dead_after);
  Member joining = core_.addresses().self();
  if (other_rank_) joining.rank = *other_rank_;
  detail::send_call<JoinReply, Member, std::int32_t>(
      through(*session), key_of<JoinReply, Member, std::int32_t>(kJoin), std::move(how), joining,
      core_.options().world_size)
      .then([weak = weak_from_this(), session](const Result<JoinReply>& reply) {
        if (const auto self = weak.lock()) self->joined(session, reply);
      });
}

void GroupMembership::joined(const std::shared_ptr<Session>& session,
                             const Result<JoinReply>& reply) {
  if (is_done()) return;
  if (!reply) {
    const ErrorCode code = reply.code();
    const std::string text = code == ErrorCode::join_failed ? reply.message()
                                                            : "joining at " + core_.options().join +
                                                                  " failed: " + reply.message();
    const bool root_has_ended = code == ErrorCode::peer_lost || code == ErrorCode::not_sent ||
                                code == ErrorCode::unknown || code == ErrorCode::shut_down;
    if (root_has_ended && !core_.refusal()) return retry(text);  // the root may be restarted
    fail_to_join(std::make_exception_ptr(JoinFailed(text)));
    return;
  }
  if (!reply->taken.empty()) {
    core_.peers().retire(session, "it asks to join again");
    if (returning_ && core_.options().rank < 0) choose_another_rank();
    return refused(reply->taken);
  }
  root_identity_ = session->peer()->identity;
  try {
    core_.set_rank(reply->rank);
    for (const Member& member : reply->members) {
      if (member.name != core_.name()) core_.add_member(member);
    }
  } catch (...) {
    fail_to_join(std::current_exception());
    return;
  }
  if (!std::exchange(joined_, true)) {
    joining_->set_value();
    return;
  }
  root_is_back();
  // A member that the new root does not know by then has ended while there was no root.
  check_members_later(*session->peer(), 2 * core_.options().liveness.dead_after);
}

}  // namespace batchrpc
