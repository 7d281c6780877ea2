#include "node/group.hpp"

#include <utility>

#include "batchrpc/base/error.hpp"
#include "batchrpc/call/call_context.hpp"
#include "batchrpc/call/exposed.hpp"
#include "node/group_end.hpp"
#include "node/group_functions.hpp"
#include "node/group_membership.hpp"
#include "node/group_root.hpp"
#include "node/node_core.hpp"

namespace batchrpc {

using namespace group_functions;

namespace {

template <class Function>
void expose(NodeCore& core, std::string_view name, Function function, Allow allow = {}) {
  core.functions().add(
      detail::make_exposed(std::string(name), std::move(function),
                           ExposeOptions{.short_handler = true, .allow = std::move(allow)}));
}

}  // namespace

Group::Group(NodeCore& core)
    : core_(core),
      root_(std::make_shared<GroupRoot>(core)),
      membership_(std::make_shared<GroupMembership>(core)),
      end_(std::make_shared<GroupEnd>(core, root_)) {}

Group::~Group() = default;

void Group::start() {
  const auto self = [weak = weak_from_this()] {
    auto group = weak.lock();
    if (!group) throw ShutDown("the node is shut down");
    return group;
  };
  expose(core_, kWho, [self] { return self()->core_.addresses().self(); });
  expose(core_, kJoin, [self](Member member, std::int32_t world_size) {
    check_size(member);
    return self()->admit(std::move(member), world_size);
  });
  const Allow members = [self](const PeerIdentity& caller) {
    return self()->core_.peers().is_member(caller);
  };
  const Allow the_root = [self](const PeerIdentity& caller) {
    return self()->core_.peers().is_root(caller);
  };
  expose(
      core_, kMembers, [self] { return self()->root_->members(); }, members);
  expose(
      core_, kJoined, [self](const Member& member) { self()->core_.add_member(member); }, the_root);
  expose(
      core_, kLeft,
      [self](const std::string& name, std::uint64_t incarnation, const std::string& reason) {
        self()->core_.peers().remove(name, incarnation, reason.substr(0, wire::kMaxReason));
      },
      the_root);
  expose(
      core_, kDone,
      [self] { self()->end_->member_is_done(CallContext::current()->caller().incarnation); },
      members);
  expose(
      core_, kQuiet,
      [self](std::uint64_t round, std::uint64_t calls) {
        self()->end_->member_is_quiet(CallContext::current()->caller().incarnation, round, calls);
      },
      members);
  expose(
      core_, kReportQuiet, [self](std::uint64_t round) { self()->end_->report_quiet(round); },
      the_root);
  expose(
      core_, kEnd, [self] { self()->end_->end(); }, the_root);
}

Future<JoinReply> Group::admit(Member member, std::int32_t world_size) {
  if (!is_root()) {
    throw JoinFailed(member.name + " asked to join at " + core_.name() +
                     ", which is not the root of its group; join at the root, whose address is " +
                     core_.options().join + " (NodeOptions::join)");
  }
  bool is_new = false;
  Future<JoinReply> reply = root_->admit(std::move(member), world_size, is_new);
  if (is_new) end_->members_changed();
  return reply;
}

bool Group::is_root() const { return core_.rank() == 0; }

Future<void> Group::gather() { return root_->gather(); }

Future<void> Group::join() { return membership_->join(); }

void Group::give_up() {
  root_->give_up();
  membership_->give_up();
}

void Group::peer_lost(const PeerInfo& peer, const std::string& reason) {
  if (is_root()) {
    root_->peer_lost(peer, reason);
    end_->members_changed();
  } else {
    if (peer.rank == 0) end_->root_lost(peer.name, reason);
    membership_->peer_lost(peer);
  }
}

void Group::peer_joined(const PeerInfo& peer) {
  if (is_root()) {
    root_->peer_joined(peer);
    end_->members_changed();
  } else {
    membership_->peer_joined(peer);
  }
}

bool Group::refused(const std::string& holder, TimePoint heard_at, const std::string& why) {
  return root_->refused(holder, heard_at, why);
}

void Group::tick() {
  if (is_root()) root_->tick();
  end_->tick();
}

}  // namespace batchrpc
