#include <algorithm>

#include "base/time.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/call/caller.hpp"
#include "call/duration_text.hpp"
#include "node/group.hpp"
#include "node/group_functions.hpp"
#include "node/node_core.hpp"

// The root's part of a group: it keeps the list of members.
namespace batchrpc {

using namespace group_functions;

Future<void> Group::gather() {
  auto future = done_->get_future();
  {
    const std::lock_guard lock(mutex_);
    members_.push_back(core_.self_member());
    give_up_at_ = after(core_.loop()->now(), core_.options().join_timeout);
    timer_ = core_.loop()->schedule(give_up_at_, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->time_out();
    });
  }
  finish_if_complete();
  return future;
}

bool Group::complete() const {
  const auto size = core_.options().world_size;
  return size == 0 || members_.size() == static_cast<std::size_t>(size);
}

std::int32_t Group::free_rank() const {
  std::int32_t rank = 0;
  while (std::any_of(members_.begin(), members_.end(),
                     [&](const Member& member) { return member.rank == rank; })) {
    ++rank;
  }
  return rank;
}

Future<JoinReply> Group::admit(Member member, std::int32_t world_size) {
  const NodeOptions& options = core_.options();
  const PeerIdentity& caller = CallContext::current()->caller();
  if (const std::exception_ptr ending = core_.refusal()) std::rethrow_exception(ending);
  if (member.name != caller.name || member.incarnation != caller.incarnation) {
    throw JoinFailed(caller.name + " asked to join as " + member.name +
                     "; a node joins for itself");
  }
  Promise<JoinReply> promise;
  auto future = promise.get_future();
  {
    const std::lock_guard lock(mutex_);
    if (world_size != options.world_size) {
      throw JoinFailed(member.name + " expects a world of " + std::to_string(world_size) +
                       ", the root " + core_.name() + " one of " +
                       std::to_string(options.world_size) + "; give both one world_size");
    }
    if (member.name == core_.name()) throw JoinFailed("the root does not join itself");
    const auto is_again = [&](const Member& known) { return known.name == member.name; };
    const auto before = std::find_if(members_.begin(), members_.end(), is_again);
    const bool chosen = member.rank < 0;
    if (chosen) member.rank = before != members_.end() ? before->rank : free_rank();
    for (const Member& known : members_) {
      if (known.rank == member.rank && known.name != member.name) {
        return make_ready_future(JoinReply{
            .taken = "rank " + std::to_string(member.rank) + " is taken by " + known.name +
                     (known.addresses.empty() ? "" : " at " + known.addresses.front()) +
                     "; give each node a rank of its own"});
      }
    }
    if (options.world_size > 0 && member.rank >= options.world_size) {
      if (chosen) {
        return make_ready_future(JoinReply{.taken = "all ranks of the world of " +
                                                    std::to_string(options.world_size) +
                                                    " are taken; raise NodeOptions::world_size"});
      }
      throw JoinFailed("rank " + std::to_string(member.rank) + " is beyond the world of " +
                       std::to_string(options.world_size));
    }
    std::erase_if(members_, is_again);  // a node that comes again takes its own place
    members_.push_back(member);
    lost_.erase(member.name);
    waiting_.push_back({member, std::move(promise)});
  }
  core_.add_member(member);
  told_[member.incarnation] = core_.peers().standing(member.name).sessions_ended;
  finish_if_complete();
  return future;
}

void Group::finish_if_complete() {
  std::vector<Waiting> ready;
  JoinReply reply;
  std::shared_ptr<Promise<void>> done;
  bool later = false;
  {
    const std::lock_guard lock(mutex_);
    if (!gathered_ && !complete()) return;
    later = gathered_ || core_.options().world_size == 0;
    if (!std::exchange(gathered_, true)) {
      done = done_;
      core_.loop()->cancel(timer_);
    }
    ready.swap(waiting_);
    reply.members = members_;
  }
  for (Waiting& waiting : ready) {
    reply.rank = waiting.member.rank;
    waiting.promise.set_value(reply);
    if (later) notify_others(waiting.member, true, {});
  }
  if (done) done->set_value();
}

std::string Group::missing_ranks() const {
  std::string ranks;
  int missing = 0;
  for (std::int32_t rank = 0; rank < core_.options().world_size; ++rank) {
    const bool there = std::any_of(members_.begin(), members_.end(),
                                   [&](const Member& member) { return member.rank == rank; });
    if (there) continue;
    ++missing;
    if (missing <= 20) ranks += (missing == 1 ? "" : ", ") + std::to_string(rank);
  }
  if (missing > 20) ranks += " and " + std::to_string(missing - 20) + " more";
  return (missing == 1 ? "rank " : "ranks ") + ranks;
}

void Group::time_out() {
  std::vector<Waiting> waiting;
  std::exception_ptr error;
  {
    const std::lock_guard lock(mutex_);
    if (gathered_) return;
    waiting.swap(waiting_);
    error = std::make_exception_ptr(
        JoinFailed(missing_ranks() + " of a world of " +
                   std::to_string(core_.options().world_size) + " did not join " + core_.name() +
                   ", which is rank 0, within " + text_of(core_.options().join_timeout) +
                   "; see whether they were started with the same address, or raise "
                   "NodeOptions::join_timeout"));
  }
  for (Waiting& entry : waiting)
    entry.promise.set_error(error);
  done_->set_error(error);
}

void Group::peer_lost(const PeerInfo& peer, const std::string& reason) {
  if (core_.rank() != 0) {
    if (peer.rank == 0) root_lost(peer.incarnation);
    return;
  }
  std::vector<Waiting> dropped;
  Member lost;
  {
    const std::lock_guard lock(mutex_);
    const auto at = std::find_if(members_.begin(), members_.end(), [&](const Member& member) {
      return member.name == peer.name && member.incarnation == peer.incarnation;
    });
    if (at == members_.end()) return;
    lost = *at;
    members_.erase(at);
    lost_.insert_or_assign(lost.name, lost);
    const auto gone = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& entry) {
      return entry.member.name == lost.name;
    });
    if (gone != waiting_.end()) {
      dropped.push_back(std::move(*gone));
      waiting_.erase(gone);
    }
  }
  notify_others(lost, false, reason);
}

void Group::peer_joined(const PeerInfo& peer) {
  if (core_.rank() != 0) {
    if (peer.rank != 0 || !returning_ || peer.incarnation != lost_root_) return;
    root_is_back();
    check_members({.name = peer.name, .rank = 0, .incarnation = peer.incarnation});
    return;
  }
  Member back;
  std::vector<Member> members;
  std::vector<Member> lost;
  {
    const std::lock_guard lock(mutex_);
    const auto at = lost_.find(peer.name);
    if (at == lost_.end() || at->second.incarnation != peer.incarnation) return;
    back = std::move(at->second);
    lost_.erase(at);
    members = members_;
    for (const auto& [name, member] : lost_)
      lost.push_back(member);
    members_.push_back(back);
  }
  notify_others(back, true, {});
  told_[back.incarnation] = core_.peers().standing(back.name).sessions_ended;
  notify_all(back.name, members, lost);  // it has missed the news of the meantime
}

void Group::tick() {
  if (core_.rank() != 0) return;
  std::vector<Member> members;
  std::vector<Member> lost;
  {
    const std::lock_guard lock(mutex_);
    if (members_.size() < 2) return;
    members = members_;
    for (const auto& [name, member] : lost_)
      lost.push_back(member);
  }
  std::map<std::uint64_t, std::uint64_t> told;
  for (const Member& member : members) {
    const PeerStanding standing = core_.peers().standing(member.name);
    const auto before = told_.find(member.incarnation);
    if (standing.incarnation != member.incarnation) continue;
    told[member.incarnation] = standing.sessions_ended;
    // Its news went over a session that has ended, maybe, though it is not lost.
    const bool missed = before != told_.end() && before->second != standing.sessions_ended;
    if (missed && standing.live) notify_all(member.name, members, lost);
  }
  told_.swap(told);
}

void Group::notify_all(const std::string& name, const std::vector<Member>& members,
                       const std::vector<Member>& lost) {
  for (const Member& member : lost)
    notify(name, member, false, "it was lost while this node was cut off from the root");
  for (const Member& member : members) {
    if (member.name != core_.name() && member.name != name) notify(name, member, true, {});
  }
}

void Group::notify_others(const Member& about, bool joined, const std::string& reason) {
  std::vector<std::string> names;
  {
    const std::lock_guard lock(mutex_);
    for (const Member& member : members_) {
      if (member.name != core_.name() && member.name != about.name) names.push_back(member.name);
    }
  }
  for (const std::string& name : names)
    notify(name, about, joined, reason);
}

void Group::notify(const std::string& name, const Member& about, bool joined,
                   const std::string& reason) {
  const auto submit = [&](const auto& key, detail::OutgoingOptions&& options, Encoder& encoder,
                          detail::ReplyHandler&& handler) {
    core_.submit(name, key, std::move(options), encoder, std::move(handler));
  };
  try {
    if (joined) {
      detail::send_notification<Member>(submit, key_of<void, Member>(kJoined), {}, about);
    } else {
      detail::send_notification<std::string, std::uint64_t, std::string>(
          submit, key_of<void, std::string, std::uint64_t, std::string>(kLeft), {}, about.name,
          about.incarnation, reason);
    }
  } catch (const Error& error) {
    core_.log().info("could not tell " + name + " of " + about.name + ": " + error.what());
  }
}

}  // namespace batchrpc
