#include "rref/references.hpp"

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
  void sent_to(std::string_view peer) noexcept override {
    if (const auto references = references_.lock()) references->left(number_, peer);
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
  if (link->is_self()) objects_.hold_here(object);
  return made;
}

std::shared_ptr<Reference> References::to_new_object(std::string_view owner) {
  const bool is_self = owner == core_.name();
  const std::uint64_t incarnation =
      is_self ? core_.incarnation() : core_.peers().standing(owner).incarnation;
  const auto link = link_to(owner, incarnation);
  const std::lock_guard lock(mutex_);
  return make(link,
              {.owner = incarnation, .creator = core_.incarnation(), .number = next_object_++});
}

std::shared_ptr<Reference> References::received(const WireReference& wire) {
  const auto link = link_to(wire.owner, wire.object.owner);
  const std::string& parent = wire.parent.empty() ? wire.owner : wire.parent;
  std::shared_ptr<Reference> reference;
  {
    const std::lock_guard lock(mutex_);
    reference = find(wire.object);
    if (!reference) reference = make(link, wire.object);
    if (!link->is_self() && !link->is_lost()) {
      // Also where this node refers to it already: the parent hears of it from the owner (R2).
      outbox_.add(link->name(), {.object = wire.object,
                                 .kind = HoldUpdate::hold,
                                 .fork = wire.fork,
                                 .parent = wire.parent});
      return reference;
    }
  }
  if (wire.fork.parent == core_.incarnation()) {
    arrived({wire.fork});
  } else {
    outbox_.add(parent, wire.fork);
  }
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

void References::none(const std::vector<NoObject>& objects) {
  for (const NoObject& object : objects) {
    std::shared_ptr<Reference> reference;
    {
      const std::lock_guard lock(mutex_);
      reference = find(object.object);
    }
    if (reference) {
      reference->fail(make_error(static_cast<ErrorCode>(object.code), object.why, false));
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
    number = next_fork_++;
  }
  message.add_cargo(std::make_shared<ForkCargo>(weak_from_this(), number));
  const bool own = reference->is_owner();
  WireReference wire{.owner = reference->owner(),
                     .object = reference->object(),
                     .parent = own ? std::string() : core_.name(),
                     .fork = {core_.incarnation(), number}};
  const std::lock_guard lock(mutex_);
  if (!closed_) sent_[number].reference = std::move(reference);
  return wire;
}

void References::left(std::uint64_t number, std::string_view receiver) noexcept {
  const std::lock_guard lock(mutex_);
  const auto at = sent_.find(number);
  if (at == sent_.end()) return;
  at->second.receiver = receiver;
  at->second.left = true;
}

void References::message_over(std::uint64_t number) noexcept {
  SentForks::node_type never_left;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  const auto at = sent_.find(number);
  if (at == sent_.end()) return;
  if (!at->second.left) {
    never_left = sent_.extract(at);
    return;
  }
  at->second.over = true;
}

void References::taken_back(std::uint64_t number) noexcept {
  const std::lock_guard lock(mutex_);
  const auto at = sent_.find(number);
  if (at != sent_.end()) at->second.left = false;
}

void References::arrived(const std::vector<Fork>& forks) {
  std::vector<SentForks::node_type> there;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  for (const Fork& fork : forks) {
    if (fork.parent == core_.incarnation()) there.push_back(sent_.extract(fork.number));
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
    } else if (is_it && standing.live) {
      const bool failed = outbox_.take_failed(owner.name);
      const std::lock_guard lock(mutex_);
      const auto at = owners_.find(owner.incarnation);
      if (at == owners_.end()) continue;
      const auto told = std::exchange(at->second.sessions_ended, standing.sessions_ended);
      if (failed || told != standing.sessions_ended) tell_all(owner.incarnation, owner.name);
    } else if (is_it && !standing.dead) {
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

// Under the lock. What was told over a session that has ended may have been lost (R6).
void References::tell_all(std::uint64_t owner, const std::string& name) {
  outbox_.add(name, {.kind = HoldUpdate::list_begins});
  for (const auto& [object, reference] : all_) {
    if (object.owner == owner) outbox_.add(name, {.object = object, .kind = HoldUpdate::hold});
  }
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
  const Duration lease = std::max(core_.options().rref_lease, core_.options().dead_after);
  std::vector<SentForks::node_type> ended;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  for (auto at = sent_.begin(); at != sent_.end();) {
    const auto next = std::next(at);
    Sent& sent = at->second;
    const auto known = sent.over ? receivers.find(sent.receiver) : receivers.end();
    if (known != receivers.end()) {
      const PeerStanding& standing = known->second;
      if (sent.incarnation == 0) sent.incarnation = standing.incarnation;
      const bool is_it = sent.incarnation == standing.incarnation && standing.incarnation != 0;
      if (is_it && standing.live) {
        sent.away_since.reset();
        outbox_.add(sent.receiver, ForkQuestion{.object = sent.reference->object(),
                                                .fork = {core_.incarnation(), at->first}});
      } else if (!sent.away_since) {
        sent.away_since = now;
      }
      const bool gone = (!is_it && standing.incarnation != 0) || (is_it && standing.dead);
      const bool expired = sent.away_since && now - *sent.away_since >= lease;
      if (gone || expired || sent.reference->link()->is_lost()) ended.push_back(sent_.extract(at));
    }
    at = next;
  }
}

}  // namespace batchrpc::detail
