#include <algorithm>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "batchrpc/call/caller.hpp"
#include "node/group_functions.hpp"
#include "node/group_membership.hpp"
#include "node/node_core.hpp"

// How a member returns to a lost root. It continues to work with the other members, and tries the
// address by which it joined until a root answers. A restarted root knows no members, so the member
// joins it as it did at first.
namespace batchrpc {

using namespace group_functions;

namespace {

// Random pauses, so that the members of a large group do not all return at once.
constexpr Duration kFirstPause = std::chrono::milliseconds(200);
constexpr Duration kPause = std::chrono::seconds(1);

}  // namespace

void GroupMembership::peer_lost(const PeerInfo& peer) {
  if (peer.rank != 0 || !joined_ || std::exchange(returning_, true)) return;
  lost_root_ = peer.incarnation;
  core_.log().info("the root is lost; trying " + core_.options().join +
                   " until it is back; nodes cannot join meanwhile");
  address_.reset();
  other_rank_.reset();
  refused_for_.clear();
  return_after(Duration::zero(), kFirstPause);
}

void GroupMembership::peer_joined(const PeerInfo& peer) {
  if (peer.rank != 0 || !returning_ || is_forgotten_ || peer.incarnation != lost_root_) return;
  root_is_back();
  check_members({.name = peer.name, .rank = 0, .incarnation = peer.incarnation});
}

void GroupMembership::return_again() { return_after(kPause / 2, kPause * 3 / 2); }

void GroupMembership::return_after(Duration least, Duration most) {
  core_.loop()->cancel(return_timer_);
  const TimePoint when = core_.loop()->now() + pace_.between(least, most);
  return_timer_ = core_.loop()->schedule(when, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->try_to_return();
  });
}

void GroupMembership::try_to_return() {
  return_timer_ = 0;
  if (!returning_ || core_.refusal()) return;
  pace_.set_deadline(core_.loop()->now() + core_.options().liveness.dead_after);
  try_root();
}

void GroupMembership::refused_return(const std::string& why) {
  if (std::exchange(refused_for_, why) != why) {
    core_.log().warning("this node cannot return to its group yet; asking again: " + why);
  }
  return_again();
}

// Chooses a rank that no node had before the root was lost, since its holder may return, too.
void GroupMembership::choose_another_rank() {
  int highest = std::max(core_.rank(), other_rank_.value_or(-1));
  for (const PeerInfo& peer : core_.peers().snapshot())
    highest = std::max(highest, peer.rank);
  const bool has_next = core_.options().world_size == 0 && highest + 1 < kMaxWorldSize;
  other_rank_ = has_next ? highest + 1 : -1;
}

void GroupMembership::root_is_back() {
  if (!std::exchange(returning_, false)) return;
  is_forgotten_ = false;
  core_.loop()->cancel(std::exchange(return_timer_, 0));
  core_.log().info("the root is back; this node has rank " + std::to_string(core_.rank()));
}

// While this node was lost, another node took its rank, or the root forgot it.
void GroupMembership::join_again() {
  if (core_.refusal() || std::exchange(returning_, true)) return;
  is_forgotten_ = true;
  core_.log().info("the root no longer counts this node as a member; joining again");
  address_.reset();
  other_rank_.reset();
  refused_for_.clear();
  try_to_return();
}

void GroupMembership::check_members_later(const PeerIdentity& root, Duration pause) {
  core_.loop()->schedule(core_.loop()->now() + pause, [weak = weak_from_this(), root] {
    if (const auto self = weak.lock()) self->check_members(root);
  });
}

void GroupMembership::check_again(const PeerIdentity& root, ErrorCode code,
                                  const std::string& why) {
  core_.log().info("could not ask the root for its members: " + why);
  const bool may_change = code == ErrorCode::not_sent || code == ErrorCode::unknown ||
                          code == ErrorCode::timed_out || code == ErrorCode::overloaded;
  if (may_change) check_members_later(root, kPause);
}

// Asks the root for its members, since nodes may have joined and left unnoticed. A peer that the
// root does not know is kept while this node has a connection to it.
void GroupMembership::check_members(const PeerIdentity& root) {
  if (core_.refusal() || !core_.peers().is_live(root.name) || !core_.peers().is_current(root)) {
    return;
  }
  const auto submit = [&](const auto& key, detail::OutgoingOptions&& options, Encoder& encoder,
                          detail::ReplyHandler&& handler) {
    core_.submit(root.name, key, std::move(options), encoder, std::move(handler));
  };
  try {
    detail::OutgoingOptions how;
    how.timeout = core_.call_timeout();
    detail::send_call<std::vector<Member>>(submit, key_of<std::vector<Member>>(kMembers),
                                           std::move(how))
        .then([weak = weak_from_this(), root](const Result<std::vector<Member>>& members) {
          const auto self = weak.lock();
          if (!self) return;
          if (members) return self->agree_with(*members);
          if (members.code() == ErrorCode::permission_denied) return self->join_again();
          self->check_again(root, members.code(), members.message());
        });
  } catch (const Error& error) {
    check_again(root, error.code(), error.what());
  }
}

void GroupMembership::agree_with(const std::vector<Member>& members) {
  const auto is_listed = [&](const std::string& name, std::uint64_t incarnation) {
    return std::any_of(members.begin(), members.end(), [&](const Member& member) {
      return member.name == name && member.incarnation == incarnation;
    });
  };
  if (!is_listed(core_.name(), core_.incarnation())) return join_again();
  for (const Member& member : members) {
    if (member.name != core_.name()) core_.add_member(member);
  }
  for (const PeerInfo& peer : core_.peers().snapshot()) {
    if (is_listed(peer.name, peer.incarnation)) continue;
    core_.peers().remove(peer.name, peer.incarnation, "the root no longer knows it");
  }
}

}  // namespace batchrpc
