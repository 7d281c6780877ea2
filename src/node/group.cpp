#include "node/group.hpp"

#include <utility>

#include "batchrpc/base/error.hpp"
#include "batchrpc/call/exposed.hpp"
#include "node/group_functions.hpp"
#include "node/group_membership.hpp"
#include "node/group_root.hpp"
#include "node/node_core.hpp"

namespace batchrpc {

using namespace group_functions;

namespace {

template <class Function>
void expose(NodeCore& core, std::string_view name, Function function) {
  using Traits = detail::FunctionTraits<Function>;
  core.functions().add(std::make_shared<detail::TypedFunction<Function, Traits>>(
      std::string(name), std::move(function), ExposeOptions{.short_handler = true}));
}

}  // namespace

Group::Group(NodeCore& core)
    : core_(core),
      root_(std::make_shared<GroupRoot>(core)),
      membership_(std::make_shared<GroupMembership>(core)) {}

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
  expose(core_, kMembers, [self] {
    self()->check_caller(kMembers, false);
    return self()->root_->members();
  });
  expose(core_, kJoined, [self](const Member& member) {
    self()->check_caller(kJoined, true);
    self()->core_.add_member(member);
  });
  expose(core_, kLeft,
         [self](const std::string& name, std::uint64_t incarnation, const std::string& reason) {
           self()->check_caller(kLeft, true);
           self()->core_.peers().remove(name, incarnation, reason.substr(0, wire::kMaxReason));
         });
}

Future<JoinReply> Group::admit(Member member, std::int32_t world_size) {
  if (!is_root()) {
    throw JoinFailed(member.name + " asked to join at " + core_.name() +
                     ", which is not the root of its group; join at the root, whose address is " +
                     core_.options().join + " (NodeOptions::join)");
  }
  return root_->admit(std::move(member), world_size);
}

void Group::check_caller(std::string_view function, bool must_be_root) const {
  const PeerIdentity& caller = CallContext::current()->caller();
  const PeerTable& peers = core_.peers();
  if (must_be_root ? peers.is_root(caller) : peers.is_member(caller)) return;
  const std::string line = core_.name() + " refused a call of " + std::string(function) + " by " +
                           caller.name + ": only " +
                           (must_be_root ? "the root" : "members of the group") + " may call it";
  core_.log_limits().refused_calls.write(core_.log(), LogLevel::warning, core_.loop()->now(), line);
  throw PermissionDenied(line);
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
  } else {
    membership_->peer_lost(peer);
  }
}

void Group::peer_joined(const PeerInfo& peer) {
  if (is_root()) {
    root_->peer_joined(peer);
  } else {
    membership_->peer_joined(peer);
  }
}

void Group::tick() {
  if (is_root()) root_->tick();
}

}  // namespace batchrpc
