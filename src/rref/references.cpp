#include "rref/references.hpp"

#include <algorithm>
#include <utility>

#include "batchrpc/base/error.hpp"
#include "rref/shrink.hpp"

namespace batchrpc::detail {
namespace {

// Goes with the message that carries a handle.
class ForkCargo final : public Cargo {
 public:
  ForkCargo(std::weak_ptr<References> references, std::uint64_t number)
      : references_(std::move(references)), number_(number) {}
  ~ForkCargo() override {
    if (const auto references = references_.lock()) references->message_over(number_);
  }
  void taken_back() noexcept override {
    if (const auto references = references_.lock()) references->taken_back(number_);
  }
  void sent_to(std::string_view peer, std::uint64_t incarnation, bool as_reply) noexcept override {
    if (const auto references = references_.lock())
      references->left(number_, peer, incarnation, as_reply);
  }

 private:
  const std::weak_ptr<References> references_;
  const std::uint64_t number_;
};

std::exception_ptr owner_lost(const std::string& owner, const std::string& why) {
  return std::make_exception_ptr(OwnerLost("the object behind this RRef is gone with " + owner +
                                           ", which " + why + "; create another"));
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

// --- what this node refers to

std::shared_ptr<OwnerLink> References::link_to(std::string_view name, std::uint64_t incarnation) {
  {
    const std::lock_guard lock(mutex_);
    const auto at = owners_.find(incarnation);
    if (at != owners_.end()) {
      if (auto link = at->second.link.lock(); link && link->name() == name) return link;
    }
  }
  const PeerStanding standing = core_.peers().standing(name);  // not under the lock: see Outbox
  const bool is_self = incarnation == core_.incarnation();
  const std::lock_guard lock(mutex_);
  const auto [at, added] = owners_.try_emplace(incarnation);
  auto link = at->second.link.lock();
  if (link && link->name() == name) return link;
  if (!added && incarnation != 0 && at->second.name != name) {
    // An incarnation has one name, the one that it has said itself.
    if (standing.incarnation != incarnation) {
      throw InvalidArgument("a handle says that an object of " + at->second.name + " is of " +
                            std::string(name));
    }
    if (link) link->lose(owner_lost(link->name(), "never had it"));
  }
  link = std::make_shared<OwnerLink>(*this, std::string(name), incarnation, is_self);
  if (!is_self && name == core_.name()) link->lose(owner_lost(link->name(), "was restarted"));
  at->second.name = name;
  at->second.link = link;
  if (added) at->second.sessions_ended = standing.sessions_ended;
  return link;
}

// Under the lock. Null where none is alive.
std::shared_ptr<Reference> References::find(const ObjectId& object) const {
  const auto at = all_.find(object);
  return at != all_.end() ? at->second->weak_from_this().lock() : nullptr;
}

// Under the lock. One that is just being destroyed has this one put in its place, and the owner
// does not hear of its end (R1).
std::shared_ptr<Reference> References::make(const std::shared_ptr<OwnerLink>& link,
                                            const ObjectId& object) {
  auto made = std::make_shared<Reference>(core_.shared_from_this(), link, object);
  all_[object] = made.get();
  return made;
}

// Under the lock.
ObjectId References::next_object(std::uint64_t owner) {
  return {.owner = owner, .creator = core_.incarnation(), .number = next_object_++};
}

std::shared_ptr<Reference> References::to_new_object(std::string_view owner) {
  const bool is_self = owner == core_.name();
  const std::uint64_t incarnation =
      is_self ? core_.incarnation() : core_.peers().standing(owner).incarnation;
  const auto link = link_to(owner, incarnation);
  const std::lock_guard lock(mutex_);
  const ObjectId object = next_object(incarnation);
  if (is_self) objects_.await_here(object);
  return make(link, object);
}

std::shared_ptr<Reference> References::own(std::string_view type,
                                           const std::shared_ptr<void>& object) {
  const auto link = link_to(core_.name(), core_.incarnation());
  const std::lock_guard lock(mutex_);
  const ObjectId id = next_object(core_.incarnation());
  objects_.own(id, type, object);
  return make(link, id);
}

std::shared_ptr<Reference> References::received(const WireReference& wire) {
  const auto link = link_to(wire.owner, wire.object.owner);
  const std::string& parent = wire.parent.empty() ? wire.owner : wire.parent;
  std::shared_ptr<Reference> reference;
  std::shared_ptr<Reference> mistaken;  // let go without the lock
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
      // Also where this node refers to it already: the parent hears of it from the owner (R2).
      outbox_.add(link->name(), {.object = wire.object,
                                 .kind = HoldUpdate::hold,
                                 .fork = wire.fork,
                                 .parent = wire.parent});
      return reference;
    }
  }
  if (wire.fork.parent != core_.incarnation()) outbox_.add(parent, wire.fork);
  return reference;
}

// Under the lock. Whether `fork` was to this node itself, of which nobody need hear.
bool References::arrived_here(const Fork& fork, const Reference& reference) {
  const auto at = find_sent(fork);
  if (at == sent_.end() || at->second.reference.get() != &reference) return false;
  sent_.erase(at);
  return true;
}

// Under the lock.
References::SentForks::iterator References::find_sent(std::uint64_t number) {
  const auto at = sent_.find(number >> 32);
  return at != sent_.end() && at->second.number == number ? at : sent_.end();
}

// Under the lock.
References::SentForks::iterator References::find_sent(const Fork& fork) {
  return fork.parent == core_.incarnation() ? find_sent(fork.number) : sent_.end();
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
    // Of another life than it is asked about a node says that it is lost.
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

std::size_t References::in_flight() const {
  const std::lock_guard lock(mutex_);
  return sent_.size();
}

// --- handles on their way

WireReference References::send(std::shared_ptr<Reference> reference, Encoder& message) {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    while (sent_.contains(next_fork_))
      ++next_fork_;
    // What peers could guess, they could end.
    number = std::uint64_t{next_fork_++} << 32 | random_();
  }
  message.add_cargo(std::make_shared<ForkCargo>(weak_from_this(), number));
  const bool own = reference->is_owner();
  WireReference wire{.owner = reference->owner(),
                     .object = reference->object(),
                     .parent = own ? std::string() : core_.name(),
                     .fork = {core_.incarnation(), number}};
  const std::lock_guard lock(mutex_);
  if (closed_) {
    if (!own) all_.erase(reference->object());  // as close() does: it may arrive somewhere yet
  } else {
    sent_[number >> 32] = {.number = number, .reference = std::move(reference)};
  }
  return wire;
}

void References::left(std::uint64_t number, std::string_view receiver, std::uint64_t incarnation,
                      bool as_reply) noexcept {
  const std::lock_guard lock(mutex_);
  const auto at = find_sent(number);
  if (at == sent_.end()) return;
  at->second.receiver = receiver;
  at->second.incarnation = incarnation;
  at->second.as_reply = as_reply;
  at->second.left = true;
}

void References::message_over(std::uint64_t number) noexcept {
  SentForks::node_type never_left;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  const auto at = find_sent(number);
  if (at == sent_.end()) return;
  if (!at->second.left) {
    never_left = sent_.extract(at);
    return;
  }
  at->second.over = true;
  // A reply is sent, and may be on its way: over another connection than the question, until that
  // counts as dead. What a call has brought is being confirmed.
  at->second.ask_from =
      core_.loop()->coarse_now() +
      (at->second.as_reply ? 2 * core_.options().dead_after : core_.options().ping_after);
}

void References::taken_back(std::uint64_t number) noexcept {
  const std::lock_guard lock(mutex_);
  const auto at = find_sent(number);
  if (at != sent_.end()) at->second.left = false;
}

void References::arrived(std::string_view from, const std::vector<Fork>& forks) {
  std::vector<SentForks::node_type> there;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  for (const Fork& fork : forks) {
    const auto at = find_sent(fork);
    if (at == sent_.end()) continue;
    const Sent& sent = at->second;
    if (from == sent.receiver || from == sent.reference->owner())
      there.push_back(sent_.extract(at));
  }
}

std::vector<Fork> References::asked(const std::string& parent,
                                    const std::vector<ForkQuestion>& questions) {
  std::vector<Fork> not_here;
  for (const ForkQuestion& question : questions) {
    std::shared_ptr<Reference> reference;
    {
      const std::lock_guard lock(mutex_);
      reference = find(question.object);
      if (reference && !reference->is_owner() && !reference->link()->is_lost()) {
        outbox_.add(reference->owner(), {.object = question.object,
                                         .kind = HoldUpdate::hold,
                                         .fork = question.fork,
                                         .parent = parent});
        continue;
      }
    }
    not_here.push_back(question.fork);
  }
  return not_here;
}

void References::close() {
  SentForks left_behind;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  closed_ = true;
  left_behind.swap(sent_);
  // The owner is not told that these are released: the handles may be on their way yet (R5).
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
  std::sort(held.begin(), held.end());  // in order, whatever the hash
  for (const auto& [object, owner] : held)
    outbox_.add(owner, {.object = object, .kind = HoldUpdate::release});
}

// --- now and then

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
    for (const auto& [incarnation, owner] : owners_) {
      if (owner.name == core_.name()) continue;
      owners.push_back({.name = owner.name, .rank = -1, .incarnation = incarnation});
    }
  }
  for (const PeerIdentity& owner : owners) {
    const PeerStanding standing = core_.peers().standing(owner.name);
    const bool is_it = standing.incarnation == owner.incarnation;
    if (is_it ? standing.left : !core_.peers().is_current(owner)) {
      lose_owner(owner, is_it ? "has shut down" : "was restarted");
    } else if (!is_it) {
      forget_stranger(owner);
    } else if (standing.live) {
      const std::lock_guard lock(mutex_);
      const auto at = owners_.find(owner.incarnation);
      if (at == owners_.end()) continue;
      const auto told = std::exchange(at->second.sessions_ended, standing.sessions_ended);
      const bool failed = std::exchange(at->second.not_told, false);
      if (failed || told != standing.sessions_ended) tell_all(owner.incarnation, owner.name);
    } else if (!standing.dead) {
      core_.peers().seek(owner.name);
    }
  }
}

void References::lose_owner(const PeerIdentity& owner, const std::string& why) {
  const std::lock_guard lock(mutex_);
  const auto at = owners_.find(owner.incarnation);
  if (at == owners_.end()) return;
  if (const auto link = at->second.link.lock()) link->lose(owner_lost(owner.name, why));
  owners_.erase(at);
}

// An owner of whom nothing is held, and whom this node does not know: it was told nothing.
void References::forget_stranger(const PeerIdentity& owner) {
  const std::lock_guard lock(mutex_);
  const auto at = owners_.find(owner.incarnation);
  if (at != owners_.end() && at->second.link.expired()) owners_.erase(at);
}

// Under the lock. What was told over a session that has ended may have been lost (R6).
void References::tell_all(std::uint64_t owner, const std::string& name) {
  const ObjectId next{.owner = owner, .creator = core_.incarnation(), .number = next_object_};
  outbox_.add(name, {.object = next, .kind = HoldUpdate::list_begins});
  std::vector<ObjectId> held;
  for (const auto& [object, reference] : all_) {
    if (object.owner == owner) held.push_back(object);
  }
  std::sort(held.begin(), held.end());  // in order, whatever the hash
  for (const ObjectId& object : held)
    outbox_.add(name, {.object = object, .kind = HoldUpdate::hold});
  outbox_.add(name, {.kind = HoldUpdate::list_ends});
}

void References::look_after_forks() {
  std::map<std::string, PeerStanding> receivers;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, sent] : sent_) {
      if (sent.over) receivers.try_emplace(sent.receiver);
    }
  }
  if (receivers.empty()) return;
  for (auto& [name, standing] : receivers)
    standing = core_.peers().standing(name);
  const TimePoint now = core_.loop()->coarse_now();
  std::vector<SentForks::node_type> ended;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  for (auto at = sent_.begin(); at != sent_.end();) {
    const auto next = std::next(at);
    const auto known = at->second.over ? receivers.find(at->second.receiver) : receivers.end();
    if (known != receivers.end() && has_ended(at->second, known->second, now)) {
      ended.push_back(sent_.extract(at));
    }
    at = next;
  }
}

// Under the lock. Of one whose message is over; asks its receiver after it.
bool References::has_ended(Sent& sent, const PeerStanding& receiver, TimePoint now) {
  const NodeOptions& options = core_.options();
  if (sent.reference->link()->is_lost()) return true;
  // A receiver that was in the owner's reach has told it by now.
  if (now >= sent.ask_from + std::max(options.rref_lease, options.dead_after)) return true;
  // This node is its receiver, and has not decoded it.
  if (sent.receiver == core_.name()) return now >= sent.ask_from;
  if (sent.incarnation == 0) sent.incarnation = receiver.incarnation;
  const bool is_it = sent.incarnation == receiver.incarnation && receiver.incarnation != 0;
  Presence presence = Presence::away;
  if (is_it && receiver.live) {
    presence = Presence::there;
    if (now >= sent.ask_from) {
      outbox_.add(sent.receiver, ForkQuestion{.object = sent.reference->object(),
                                              .fork = {core_.incarnation(), sent.number}});
    }
  } else if (is_it ? receiver.dead : receiver.incarnation != 0) {
    presence = Presence::dead;
  }
  // It may have passed the handle on before it died (R5).
  return sent.absence.is_over(presence, now, options);
}

}  // namespace batchrpc::detail
