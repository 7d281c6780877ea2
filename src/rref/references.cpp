#include "rref/references.hpp"

#include <algorithm>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "rref/shrink.hpp"

// The node's references and their owners. Handles in flight are in reference_forks.cpp.
namespace batchrpc::detail {
namespace {

std::exception_ptr owner_lost(const std::string& owner, const std::string& why) {
  return std::make_exception_ptr(OwnerLost("the object behind this RRef is lost: its owner " +
                                           owner + " " + why + "; create a new one"));
}

}  // namespace

std::exception_ptr OwnerLink::lost() const {
  if (!is_lost()) return nullptr;
  const std::lock_guard lock(mutex_);
  return why_;
}

void OwnerLink::lose(std::exception_ptr why) {
  const std::lock_guard lock(mutex_);
  if (is_lost()) return;
  why_ = std::move(why);
  lost_.store(true, std::memory_order_release);
}

std::shared_ptr<OwnerLink> References::link_to(std::string_view name, std::uint64_t incarnation) {
  {
    const std::lock_guard lock(mutex_);
    const auto at = owners_.find(incarnation);
    if (at != owners_.end()) {
      if (auto link = at->second.link.lock(); link && link->name() == name) return link;
    }
  }
  const PeerStanding standing = node_.peers().standing(name);  // before locking: see Outbox
  const bool is_self = incarnation == node_.incarnation();
  const std::lock_guard lock(mutex_);
  const auto [at, added] = owners_.try_emplace(incarnation);
  auto link = at->second.link.lock();
  if (link && link->name() == name) return link;
  if (!added && incarnation != 0 && at->second.name != name) {
    // An incarnation has one name, which it reports itself.
    if (standing.incarnation != incarnation) {
      throw InvalidArgument("an RRef names another owner for an object of " + at->second.name +
                            ": " + std::string(name));
    }
    if (link) link->lose(owner_lost(link->name(), "never had it"));
  }
  link = std::make_shared<OwnerLink>(*this, std::string(name), incarnation, is_self);
  if (!is_self && name == node_.name()) link->lose(owner_lost(link->name(), "was restarted"));
  at->second.name = name;
  at->second.link = link;
  if (added) at->second.sessions_ended = standing.sessions_ended;
  return link;
}

// Returns null if none is alive. The caller must hold the lock.
std::shared_ptr<Reference> References::find(const ObjectId& object) const {
  const auto at = all_.find(object);
  return at != all_.end() ? at->second->weak_from_this().lock() : nullptr;
}

// If the old reference is just being destroyed, this one replaces it, and the owner does not hear
// of the old one's end (R1). The caller must hold the lock.
std::shared_ptr<Reference> References::make(const std::shared_ptr<OwnerLink>& link,
                                            const ObjectId& object) {
  auto made = std::make_shared<Reference>(node_.shared_from_this(), link, object);
  all_[object] = made.get();
  return made;
}

// The caller must hold the lock.
ObjectId References::next_object(std::uint64_t owner) {
  return {
      .owner = owner, .creator = node_.incarnation(), .number = next_object_++, .key = random_()};
}

std::shared_ptr<Reference> References::to_new_object(std::string_view owner) {
  const bool is_self = owner == node_.name();
  const PeerStanding standing = is_self ? PeerStanding{} : node_.peers().standing(owner);
  const std::uint64_t incarnation = is_self ? node_.incarnation() : standing.incarnation;
  const auto link = link_to(owner, incarnation);
  std::shared_ptr<Reference> made;
  {
    const std::lock_guard lock(mutex_);
    const ObjectId object = next_object(incarnation);
    if (is_self) objects_.await_here(object);
    made = make(link, object);
  }
  if (standing.left) {
    made->fail(std::make_exception_ptr(NotSent(
        "the object of this RRef was never created; create a new one when its owner is back "
        "(wait_for_peer()): " +
        std::string(owner) + " has shut down")));
  }
  return made;
}

std::shared_ptr<Reference> References::own(const ObjectClass& type,
                                           const std::shared_ptr<void>& object) {
  const auto link = link_to(node_.name(), node_.incarnation());
  const std::lock_guard lock(mutex_);
  const ObjectId id = next_object(node_.incarnation());
  objects_.own(id, type, object);
  return make(link, id);
}

std::shared_ptr<Reference> References::received(const WireReference& wire) {
  const auto link = link_to(wire.owner, wire.object.owner);
  const std::string& parent = wire.parent.empty() ? wire.owner : wire.parent;
  std::shared_ptr<Reference> reference;
  std::shared_ptr<Reference> mistaken;  // released without the lock
  {
    const std::lock_guard lock(mutex_);
    reference = find(wire.object);
    if (reference && reference->link() != link && reference->link()->is_lost()) {
      mistaken = std::move(reference);
    }
    if (reference && arrived_here(wire.fork, *reference)) return reference;
    if (!reference) {
      reference = make(link, wire.object);
      if (link->is_self()) objects_.hold_here(wire.object);
    }
    if (!link->is_self() && !link->is_lost()) {
      // Even if this node already has a reference: the owner notifies the parent (R2).
      outbox_.add(link->name(), {.object = wire.object,
                                 .kind = HoldUpdate::hold,
                                 .fork = wire.fork,
                                 .parent = wire.parent});
      return reference;
    }
  }
  if (wire.fork.parent != node_.incarnation()) outbox_.add(parent, wire.fork);
  return reference;
}

void References::dropped(const Reference& reference) {
  const OwnerLink& link = *reference.link();
  const std::lock_guard lock(mutex_);
  const auto at = all_.find(reference.object());
  if (at == all_.end() || at->second != &reference) return;
  all_.erase(at);
  if (link.is_self()) {
    objects_.let_go_here(reference.object());
  } else if (!link.is_lost()) {
    outbox_.add(link.name(), {.object = reference.object(), .kind = HoldUpdate::release});
  }
}

void References::not_told(const std::set<std::string>& owners) {
  const std::lock_guard lock(mutex_);
  for (auto& [incarnation, known] : owners_) {
    if (owners.contains(known.name)) known.not_told = true;
  }
}

void References::none(const PeerIdentity& owner, const std::vector<NoObject>& objects) {
  for (const NoObject& object : objects) {
    // If asked about an earlier incarnation, a node answers that the object's owner is lost.
    const bool is_lost = object.code == static_cast<std::uint16_t>(ErrorCode::owner_lost);
    if (!is_lost && object.object.owner != owner.incarnation) continue;
    std::shared_ptr<Reference> reference;
    {
      const std::lock_guard lock(mutex_);
      reference = find(object.object);
    }
    if (reference && reference->owner() == owner.name) {
      reference->fail(error_of(object, owner.name));
    }
  }
}

std::map<std::string, std::size_t> References::count() const {
  std::map<std::string, std::size_t> counts;
  const std::lock_guard lock(mutex_);
  for (const auto& [object, reference] : all_) {
    if (!reference->link()->is_self()) ++counts[reference->owner()];
  }
  return counts;
}

// --- the end

void References::close() {
  SentForks left_behind;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  closed_ = true;
  left_behind.swap(sent_);
  // Do not report these as released to the owner: the handles may still be in flight (R5).
  for (const auto& [number, sent] : left_behind) {
    if (!sent.reference->is_owner()) all_.erase(sent.reference->object());
  }
}

void References::give_back() {
  std::vector<std::pair<ObjectId, std::string>> held;
  const std::lock_guard lock(mutex_);
  for (const auto& [object, reference] : all_) {
    const OwnerLink& link = *reference->link();
    if (!link.is_self() && !link.is_lost()) held.emplace_back(object, link.name());
  }
  all_.clear();
  std::sort(held.begin(), held.end());  // in order, independent of hashing
  for (const auto& [object, owner] : held)
    outbox_.add(owner, {.object = object, .kind = HoldUpdate::release});
}

// --- periodically

void References::tick() {
  look_after_owners();
  look_after_forks();
  const std::lock_guard lock(mutex_);
  shrink(all_);
  shrink(sent_);
}

void References::look_after_owners() {
  std::vector<PeerIdentity> owners;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [incarnation, owner] : owners_)
      owners.push_back({.name = owner.name, .rank = -1, .incarnation = incarnation});
  }
  for (const PeerIdentity& owner : owners)
    look_after_owner(owner);
}

void References::look_after_owner(const OwnerLink& link) {
  look_after_owner({.name = link.name(), .rank = -1, .incarnation = link.incarnation()});
}

void References::look_after_owner(const PeerIdentity& owner) {
  if (owner.name == node_.name()) return;
  const PeerStanding standing = node_.peers().standing(owner.name);
  const bool is_it = standing.incarnation == owner.incarnation;
  if (is_it ? standing.left : !node_.peers().is_current(owner)) {
    lose_owner(owner, is_it ? "has shut down" : "was restarted");
  } else if (!is_it) {
    forget_unidentified(owner);
  } else if (standing.live) {
    const std::lock_guard lock(mutex_);
    const auto at = owners_.find(owner.incarnation);
    if (at == owners_.end()) return;
    const auto told = std::exchange(at->second.sessions_ended, standing.sessions_ended);
    const bool failed = std::exchange(at->second.not_told, false);
    if (failed || told != standing.sessions_ended) notify_all(owner.incarnation, owner.name);
  } else if (!standing.dead) {
    node_.peers().seek(owner.name);
  }
}

void References::lose_owner(const PeerIdentity& owner, const std::string& why) {
  const std::lock_guard lock(mutex_);
  const auto at = owners_.find(owner.incarnation);
  if (at == owners_.end()) return;
  if (const auto link = at->second.link.lock()) link->lose(owner_lost(owner.name, why));
  owners_.erase(at);
}

// Forgets an owner that this node does not know and holds nothing of: it was never notified.
void References::forget_unidentified(const PeerIdentity& owner) {
  const std::lock_guard lock(mutex_);
  const auto at = owners_.find(owner.incarnation);
  if (at != owners_.end() && at->second.link.expired()) owners_.erase(at);
}

// Sends all holds again, since notifications over an ended session may have been lost (R6). The
// caller must hold the lock.
void References::notify_all(std::uint64_t owner, const std::string& name) {
  const ObjectId next{.owner = owner, .creator = node_.incarnation(), .number = next_object_};
  outbox_.add(name, {.object = next, .kind = HoldUpdate::list_begins});
  std::vector<ObjectId> held;
  for (const auto& [object, reference] : all_) {
    if (object.owner == owner) held.push_back(object);
  }
  std::sort(held.begin(), held.end());  // in order, independent of hashing
  for (const ObjectId& object : held)
    outbox_.add(name, {.object = object, .kind = HoldUpdate::hold});
  outbox_.add(name, {.kind = HoldUpdate::list_ends});
}

}  // namespace batchrpc::detail
