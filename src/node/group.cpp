#include "node/group.hpp"

#include <algorithm>
#include <cmath>

#include "base/time.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/call/caller.hpp"
#include "call/duration_text.hpp"
#include "node/group_functions.hpp"
#include "node/node_core.hpp"
#include "node/options_check.hpp"

namespace batchrpc {

using namespace group_functions;

namespace {

// Who cannot be reached by a better way so often is called by the one by which it was found.
constexpr int kNearerTries = 3;

// Who held a name or rank may just have ended, or been killed: for so long it is asked for again,
// and for four pings, of which he must have answered one.
constexpr Duration kEndIsNoticed = std::chrono::seconds(2);

template <class Function>
void expose(NodeCore& core, std::string_view name, Function function, bool short_handler) {
  using Traits = detail::FunctionTraits<Function>;
  core.functions().add(std::make_shared<detail::TypedFunction<Function, Traits>>(
      std::string(name), std::move(function), ExposeOptions{.short_handler = short_handler}));
}

auto through(Session& session) {
  return [&session](const detail::FunctionKey& key, detail::OutgoingOptions&& how, Encoder& encoder,
                    detail::ReplyHandler&& handler) {
    session.outgoing().submit(key, std::move(how), encoder, std::move(handler));
  };
}

}  // namespace

Group::Group(NodeCore& core)
    : core_(core), done_(std::make_shared<Promise<void>>()), random_(core.incarnation()) {}

void Group::start() {
  const std::weak_ptr<Group> weak = weak_from_this();
  const auto self = [weak] {
    auto group = weak.lock();
    if (!group) throw ShutDown("the node is shut down");
    return group;
  };
  expose(
      core_, kWho, [self] { return self()->core_.self_member(); }, true);
  expose(
      core_, kJoin,
      [self](Member member, std::int32_t world_size) {
        return self()->admit(std::move(member), world_size);
      },
      true);
  expose(
      core_, kMembers, [self] { return self()->members(); }, true);
  expose(
      core_, kJoined, [self](const Member& member) { self()->core_.add_member(member); }, true);
  expose(
      core_, kLeft,
      [self](const std::string& name, std::uint64_t incarnation, const std::string& reason) {
        self()->core_.peers().remove(name, incarnation, reason);
      },
      true);
}

Future<void> Group::join() {
  auto future = done_->get_future();
  give_up_at_ = after(core_.loop()->now(), core_.options().join_timeout);
  core_.loop()->post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->try_root();
  });
  return future;
}

void Group::try_root() {
  const NodeOptions& options = core_.options();
  const std::string address = !nearer_.empty()         ? nearer_
                              : joins_by_file(options) ? read_join_file(join_file(options))
                                                       : options.join;
  if (address.empty()) {
    retry("the file " + join_file(options) + " is not there");
    return;
  }
  std::shared_ptr<Session> session;
  try {
    session = core_.peers().connect_to(core_.transports().parse(address, AddressUse::connect));
  } catch (const Error& error) {
    const std::string from =
        joins_by_file(options) ? "the file " + join_file(options) + " names no root: " : "";
    fail_to_join(std::make_exception_ptr(JoinFailed(from + error.what())));
    return;
  }
  tried_ = address;
  detail::OutgoingOptions how;
  how.timeout = std::max<Duration>(give_up_at_ - core_.loop()->now(), std::chrono::milliseconds(1));
  detail::send_call<Member>(through(*session), key_of<Member>(kWho), std::move(how))
      .then([weak = weak_from_this(), session](Result<Member> root) {
        if (const auto self = weak.lock()) self->root_answered(session, std::move(root));
      });
}

void Group::give_up() {
  if (done_->pending()) done_->set_error(JoinFailed("the node was given up before it had joined"));
}

void Group::fail_to_join(const std::exception_ptr& error) {
  if (!returning_) {
    done_->set_error(error);
    return;
  }
  refused_return(describe(error));
}

void Group::retry(const std::string& why) {
  if (returning_) return return_again();
  const TimePoint now = core_.loop()->now();
  if (now >= give_up_at_) {
    done_->set_error(std::make_exception_ptr(JoinFailed(
        "the root could not be reached at " + core_.options().join +
        (tried_.empty() || tried_ == core_.options().join ? "" : ", which says " + tried_) +
        ", within " + text_of(core_.options().join_timeout) + " (" + why +
        "); see whether rank 0 was started, with this address")));
    return;
  }
  // Ever more rarely, but soon for who has not waited long; each in its own rhythm.
  constexpr double kLongest = 1000;
  double milliseconds = std::min(10 * std::pow(1.6, tries_++), kLongest);
  milliseconds *= std::uniform_real_distribution(0.8, 1.2)(random_);
  try_root_at(now + std::chrono::duration_cast<Duration>(
                        std::chrono::duration<double, std::milli>(milliseconds)));
}

void Group::try_root_at(TimePoint when) {
  core_.loop()->schedule(std::min(when, give_up_at_), [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->try_root();
  });
}

void Group::refused(const std::string& why) {
  if (returning_) return refused_return(why);
  constexpr Duration kPause = std::chrono::milliseconds(50);
  const TimePoint now = core_.loop()->now();
  const Duration is_noticed = std::max(kEndIsNoticed, 4 * core_.options().ping_after);
  if (!refused_since_) refused_since_ = now;
  if (now - *refused_since_ >= is_noticed || now >= give_up_at_) {
    done_->set_error(JoinFailed(why));
    return;
  }
  try_root_at(now + kPause);
}

void Group::root_answered(const std::shared_ptr<Session>& session, Result<Member> root) {
  if (joined_ && !returning_) return;  // it came back by another way
  if (!root) {
    const auto& goodbye = session->goodbye();
    const auto said = [&goodbye](ErrorCode code) {
      return goodbye && goodbye->code == static_cast<std::uint16_t>(code);
    };
    if (said(ErrorCode::join_failed)) {
      fail_to_join(std::make_exception_ptr(JoinFailed("refused by the root: " + goodbye->reason)));
    } else if (said(ErrorCode::overloaded)) {
      refused("refused by the root: " + goodbye->reason);
    } else {
      if (session->broke_protocol() && std::exchange(warned_of_, tried_) != tried_) {
        core_.log().warning("dropped " + tried_ + ", where the root should be: " + root.message() +
                            session->connection().offence());
      }
      nearer_.clear();
      retry(root.code() == ErrorCode::timed_out
                ? "who listens there, if anyone, does not answer as a batchrpc node"
                : root.message());
    }
    return;
  }
  const PeerIdentity as_peer{
      .name = root->name, .rank = root->rank, .incarnation = root->incarnation};
  if (returning_ && core_.peers().is_current(as_peer)) {  // cut off, no more
    root_is_back();
    check_members(as_peer);
    return;
  }
  try {
    core_.listening().listen_for_peers(session->connection().local_address());
  } catch (...) {
    fail_to_join(std::current_exception());
    return;
  }
  // Nodes talk by the best way that they have, whatever the address by which they found each other.
  if (nearer_tries_ < kNearerTries) {
    const std::string better = core_.better_address(*root, tried_);
    if (!better.empty()) {
      nearer_ = better;
      ++nearer_tries_;
      core_.peers().retire(session, "it comes back by " + nearer_);
      try_root();
      return;
    }
  }
  // The root's own time-out tells which ranks are missing, so it is given the time to say so.
  detail::OutgoingOptions how;
  how.timeout = sum(core_.options().join_timeout, core_.options().dead_after);
  Member joining = core_.self_member();
  if (other_rank_) joining.rank = *other_rank_;
  detail::send_call<JoinReply, Member, std::int32_t>(
      through(*session), key_of<JoinReply, Member, std::int32_t>(kJoin), std::move(how), joining,
      core_.options().world_size)
      .then([weak = weak_from_this(), session](Result<JoinReply> reply) {
        if (const auto self = weak.lock()) self->joined(session, std::move(reply));
      });
}

void Group::joined(const std::shared_ptr<Session>& session, Result<JoinReply> reply) {
  if (joined_ && !returning_) return;
  if (!reply) {
    const ErrorCode code = reply.code();
    const std::string text = code == ErrorCode::join_failed ? reply.message()
                                                            : "joining at " + core_.options().join +
                                                                  " failed: " + reply.message();
    const bool root_has_ended = code == ErrorCode::peer_lost || code == ErrorCode::not_sent ||
                                code == ErrorCode::unknown || code == ErrorCode::shut_down;
    if (root_has_ended && !core_.refusal()) return retry(text);  // it may be started again
    fail_to_join(std::make_exception_ptr(JoinFailed(text)));
    return;
  }
  if (!reply->taken.empty()) {
    core_.peers().retire(session, "it asks again");
    if (returning_ && core_.options().rank < 0) choose_another_rank();
    return refused(reply->taken);
  }
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
    done_->set_value();
    return;
  }
  root_is_back();
  check_members_later(session->peer());
}

}  // namespace batchrpc
