#include <algorithm>
#include <random>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "batchrpc/call/caller.hpp"
#include "node/group.hpp"
#include "node/group_functions.hpp"
#include "node/node_core.hpp"

// What a member does whose root is lost: it goes on with the others, and tries the address by which
// it has joined until a root is there again. To one that was started anew, which knows nobody, it
// introduces itself as it did at first.
namespace batchrpc {

using namespace group_functions;

namespace {

// So that the members of a large group do not all come at once.
constexpr Duration kFirstPause = std::chrono::milliseconds(200);
constexpr Duration kPause = std::chrono::seconds(1);

}  // namespace

void Group::root_lost(std::uint64_t incarnation) {
  if (!joined_ || std::exchange(returning_, true)) return;
  lost_root_ = incarnation;
  core_.log().info("the root is lost; it is looked for at " + core_.options().join +
                   ", and nodes can join again when it is back");
  nearer_.clear();
  nearer_tries_ = 0;
  other_rank_.reset();
  refused_for_.clear();
  return_after(Duration::zero(), kFirstPause);
}

void Group::return_again() { return_after(kPause / 2, kPause * 3 / 2); }

void Group::return_after(Duration at_least, Duration at_most) {
  using Pause = std::uniform_int_distribution<Duration::rep>;
  const Duration pause(Pause(at_least.count(), at_most.count())(random_));
  core_.loop()->cancel(return_timer_);
  return_timer_ = core_.loop()->schedule(core_.loop()->now() + pause, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->try_to_return();
  });
}

void Group::try_to_return() {
  return_timer_ = 0;
  if (!returning_ || core_.refusal()) return;
  give_up_at_ = core_.loop()->now() + core_.options().dead_after;
  try_root();
}

void Group::refused_return(const std::string& why) {
  if (std::exchange(refused_for_, why) != why) {
    core_.log().warning("the root does not take this node back, which goes on asking: " + why);
  }
  return_again();
}

// One that was not another's before the root was lost either: that one comes back, too.
void Group::choose_another_rank() {
  int highest = std::max(core_.rank(), other_rank_.value_or(-1));
  for (const PeerInfo& peer : core_.peers().snapshot())
    highest = std::max(highest, peer.rank);
  other_rank_ = core_.options().world_size == 0 ? highest + 1 : -1;
}

void Group::root_is_back() {
  if (!std::exchange(returning_, false)) return;
  core_.loop()->cancel(std::exchange(return_timer_, 0));
  core_.log().info("the root is back; this node is of rank " + std::to_string(core_.rank()));
}

// Whom the root that was started anew has not heard of by then has ended while there was none.
void Group::check_members_later(std::shared_ptr<const PeerIdentity> root) {
  core_.loop()->schedule(core_.loop()->now() + 2 * core_.options().dead_after,
                         [weak = weak_from_this(), root = std::move(root)] {
                           if (const auto self = weak.lock()) self->check_members(*root);
                         });
}

// Who has joined and left while this node did not hear of it. Who has a connection to a node that
// the root does not know knows better.
void Group::check_members(const PeerIdentity& root) {
  if (core_.refusal() || !core_.peers().is_live(root.name) || !core_.peers().is_current(root)) {
    return;
  }
  const auto submit = [&](const auto& key, detail::OutgoingOptions&& options, Encoder& encoder,
                          detail::ReplyHandler&& handler) {
    core_.submit(root.name, key, std::move(options), encoder, std::move(handler));
  };
  try {
    detail::send_call<std::vector<Member>>(submit, key_of<std::vector<Member>>(kMembers), {})
        .then([weak = weak_from_this()](const Result<std::vector<Member>>& members) {
          const auto self = weak.lock();
          if (self && members) self->agree_with(*members);
        });
  } catch (const Error& error) {
    core_.log().info("could not ask the root for its members: " + std::string(error.what()));
  }
}

void Group::agree_with(const std::vector<Member>& members) {
  for (const Member& member : members) {
    if (member.name != core_.name()) core_.add_member(member);
  }
  for (const PeerInfo& peer : core_.peers().snapshot()) {
    const bool is_listed = std::any_of(members.begin(), members.end(), [&](const Member& member) {
      return member.name == peer.name && member.incarnation == peer.incarnation;
    });
    if (is_listed) continue;
    core_.peers().remove(peer.name, peer.incarnation, "the root does not know it any more");
  }
}

std::vector<Member> Group::members() const {
  const std::lock_guard lock(mutex_);
  return members_;
}

}  // namespace batchrpc
