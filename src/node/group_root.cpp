#include "node/group_root.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/time.hpp"
#include "batchrpc/base/error.hpp"
#include "batchrpc/call/call_context.hpp"
#include "call/duration_text.hpp"
#include "node/join_pace.hpp"
#include "node/node_core.hpp"

namespace batchrpc {

GroupRoot::GroupRoot(NodeCore& core)
    : core_(core), gathering_(std::make_shared<Promise<void>>()), news_(core) {}

Future<void> GroupRoot::gather() {
  auto future = gathering_->get_future();
  {
    const std::lock_guard lock(mutex_);
    roster_.add(core_.addresses().self());
    timer_ = core_.loop()->schedule(after(core_.loop()->now(), core_.options().join_timeout),
                                    [weak = weak_from_this()] {
                                      if (const auto self = weak.lock()) self->time_out();
                                    });
  }
  finish_if_complete();
  return future;
}

void GroupRoot::give_up() {
  if (!gathering_->pending()) return;
  gathering_->set_error(JoinFailed("the node was destroyed before it had joined"));
}

Future<JoinReply> GroupRoot::admit(Member member, std::int32_t world_size, bool& is_new) {
  const NodeOptions& options = core_.options();
  const PeerIdentity& caller = CallContext::current()->caller();
  if (const std::exception_ptr ending = core_.refusal()) std::rethrow_exception(ending);
  if (member.name != caller.name || member.incarnation != caller.incarnation) {
    throw JoinFailed(caller.name + " asked to join as " + member.name +
                     "; a node can join only under its own name");
  }
  Promise<JoinReply> promise;
  auto future = promise.get_future();
  std::vector<Member> replaced;
  {
    const std::lock_guard lock(mutex_);
    if (failed_) std::rethrow_exception(failed_);
    if (world_size != options.world_size) {
      throw JoinFailed(member.name + " expects a world_size of " + std::to_string(world_size) +
                       ", but the root '" + core_.name() + "' expects " +
                       std::to_string(options.world_size) + "; give both the same world_size");
    }
    if (member.name == core_.name()) throw JoinFailed("the root cannot join itself");
    const bool chosen = member.rank < 0;
    if (const Member* const known = roster_.find(member.name, member.incarnation)) {
      if (!chosen && member.rank != known->rank) {
        return make_ready_future(JoinReply{.taken = member.name + " has rank " +
                                                    std::to_string(known->rank) + " already"});
      }
      member = *known;
      if (is_gathered()) {  // its reply was lost, for example: this is no news
        return make_ready_future(JoinReply{.rank = member.rank, .members = roster_.members()});
      }
    }
    if (chosen) member.rank = roster_.rank_for(member.name);
    if (const Member* holder = roster_.other_of_rank(member.rank, member.name)) {
      const std::string why =
          "rank " + std::to_string(member.rank) + " is taken by " + holder->name +
          (holder->addresses.empty() ? "" : " at " + holder->addresses.front()) +
          "; give each node a rank of its own";
      const TimePoint heard_at =
          holder->name == core_.name() ? core_.loop()->now() : core_.peers().heard_at(holder->name);
      if (refused(holder->name, heard_at, why, "'" + member.name + "'")) throw JoinFailed(why);
      return make_ready_future(JoinReply{.taken = why});
    }
    if (options.world_size > 0 && member.rank >= options.world_size) {
      if (chosen) {
        return make_ready_future(JoinReply{.taken = "all ranks of the world of " +
                                                    std::to_string(options.world_size) +
                                                    " are taken; raise NodeOptions::world_size"});
      }
      throw JoinFailed("rank " + std::to_string(member.rank) +
                       " is too large for a world_size of " + std::to_string(options.world_size));
    }
    replaced = roster_.take_lost_of_rank(member.rank);
  }
  std::optional<Promise<JoinReply>> older;  // of a join that nobody waits for any more
  for (const Member& other : replaced)
    core_.peers().exclude(other.name, other.incarnation);
  core_.add_member(member);  // before it counts: the program may call it as soon as all have joined
  news_.is_up_to_date(member);
  {
    const std::lock_guard lock(mutex_);
    is_new = roster_.find(member.name, member.incarnation) == nullptr;
    roster_.add(member);  // A node that joins again replaces its own entry.
    const auto again = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& waiting) {
      return waiting.member.name == member.name;
    });
    if (again != waiting_.end()) {
      older = std::exchange(again->promise, std::move(promise));
      again->member = member;
    } else {
      waiting_.push_back({member, std::move(promise)});
    }
  }
  if (older) older->set_error(JoinFailed(member.name + " has asked to join again"));
  finish_if_complete();
  return future;
}

bool GroupRoot::is_gathered() const {
  return gathered_ || roster_.is_complete(core_.options().world_size);
}

void GroupRoot::finish_if_complete() {
  std::vector<Waiting> ready;
  JoinReply reply;
  std::shared_ptr<Promise<void>> done;
  bool later = false;
  {
    const std::lock_guard lock(mutex_);
    if (failed_ || !is_gathered()) return;
    later = gathered_ || core_.options().world_size == 0;
    if (!gathered_.exchange(true)) {
      done = gathering_;
      core_.loop()->cancel(timer_);
    }
    ready.swap(waiting_);
    reply.members = roster_.members();
  }
  for (Waiting& waiting : ready) {
    reply.rank = waiting.member.rank;
    waiting.promise.set_value(reply);
    if (later) news_.joined(waiting.member, others_than(waiting.member));
  }
  if (done) done->set_value();
}

void GroupRoot::time_out() {
  std::string missing;
  {
    const std::lock_guard lock(mutex_);
    missing = roster_.missing_ranks(core_.options().world_size);
  }
  fail(std::make_exception_ptr(JoinFailed(
      missing + " of a world of " + std::to_string(core_.options().world_size) + " did not join " +
      core_.name() + ", which is rank 0, within " + text_of(core_.options().join_timeout) +
      "; check that they were started with the same address, or raise "
      "NodeOptions::join_timeout")));
}

void GroupRoot::fail(const std::exception_ptr& error) {
  std::vector<Waiting> waiting;
  {
    const std::lock_guard lock(mutex_);
    if (gathered_ || failed_) return;
    failed_ = error;
    core_.loop()->cancel(timer_);
    waiting.swap(waiting_);
  }
  for (Waiting& entry : waiting)
    entry.promise.set_error(error);
  gathering_->set_error(error);
}

bool GroupRoot::refused(const std::string& holder, TimePoint heard_at, const std::string& why,
                        const std::string& newcomer) {
  if (core_.options().world_size == 0 || gathered_) return false;
  const TimePoint now = core_.loop()->now();
  Refusals& asked = refused_[holder];
  if (now - asked.last > std::chrono::seconds(1)) asked.first = now;  // another node, or a pause
  asked.last = now;
  // Before the refused node gives up, so that it asks once more and hears that this is final.
  const Duration ping_after = core_.options().liveness.ping_after;
  if (now - asked.first < JoinPace::patience(ping_after) * 3 / 4) return false;
  if (heard_at < asked.first + ping_after) return false;  // the holder may just have ended
  core_.loop()->defer([weak = weak_from_this(), why, newcomer] {
    if (const auto self = weak.lock()) {
      self->fail(std::make_exception_ptr(
          JoinFailed("the world of " + std::to_string(self->core_.options().world_size) +
                     " cannot become complete: " + newcomer + " wants to join, but " + why)));
    }
  });
  return true;
}

void GroupRoot::peer_lost(const PeerInfo& peer, const std::string& reason) {
  std::vector<Waiting> dropped;  // destroyed without the lock
  std::optional<Member> lost;
  std::vector<std::string> told;
  refused_.erase(peer.name);
  {
    const std::lock_guard lock(mutex_);
    lost = roster_.lose(peer.name, peer.incarnation);
    if (!lost) return;
    const auto gone = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& entry) {
      return entry.member.name == lost->name;
    });
    if (gone != waiting_.end()) {
      dropped.push_back(std::move(*gone));
      waiting_.erase(gone);
    }
    told = roster_.names_without(core_.name(), lost->name);
    // A node that still waits for the world to be complete gets the list of members at its end.
    std::erase_if(told, [&](const std::string& name) {
      return std::any_of(waiting_.begin(), waiting_.end(),
                         [&](const Waiting& entry) { return entry.member.name == name; });
    });
  }
  news_.left(*lost, reason, told);
}

void GroupRoot::peer_joined(const PeerInfo& peer) {
  std::optional<Member> back;
  std::vector<Member> members;
  std::vector<Member> lost;
  {
    const std::lock_guard lock(mutex_);
    back = roster_.restore(peer.name, peer.incarnation);
    if (!back) return;
    members = roster_.members();
    lost = roster_.lost();
  }
  news_.joined(*back, others_than(*back));
  news_.bring_up_to_date(*back, members, lost);  // It has missed news meanwhile.
}

void GroupRoot::tick() {
  std::vector<Member> members;
  std::vector<Member> lost;
  {
    const std::lock_guard lock(mutex_);
    roster_.forget_lost([&](const std::string& name) { return !core_.peers().is_known(name); });
    if (roster_.members().size() < 2) return;
    members = roster_.members();
    lost = roster_.lost();
  }
  news_.tick(members, lost);
}

std::vector<Member> GroupRoot::members() const {
  const std::lock_guard lock(mutex_);
  return roster_.members();
}

std::vector<std::string> GroupRoot::others_than(const Member& member) const {
  const std::lock_guard lock(mutex_);
  return roster_.names_without(core_.name(), member.name);
}

}  // namespace batchrpc
