#include <algorithm>
#include <iterator>
#include <utility>

#include "rref/references.hpp"

// Handles in flight: kept until their receivers have them (R2, R5).
namespace batchrpc::detail {
namespace {

// Is attached to the message that carries a handle.
class ForkHook final : public DeliveryHook {
 public:
  ForkHook(std::weak_ptr<References> references, std::uint64_t number)
      : references_(std::move(references)), number_(number) {}
  ~ForkHook() override {
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

}  // namespace

WireReference References::send(std::shared_ptr<Reference> reference, Encoder& message) {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    while (sent_.contains(next_fork_))
      ++next_fork_;
    // A number that peers could guess would let them end the fork.
    number = std::uint64_t{next_fork_++} << 32 | random_() >> 32;
  }
  message.add_delivery_hook(std::make_shared<ForkHook>(weak_from_this(), number));
  const bool own = reference->is_owner();
  WireReference wire{.owner = reference->owner(),
                     .object = reference->object(),
                     .parent = own ? std::string() : node_.name(),
                     .fork = {node_.incarnation(), number}};
  const std::lock_guard lock(mutex_);
  if (closed_) {
    if (!own) all_.erase(reference->object());  // like close(): it may still arrive
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
  // A reply may still be in flight. It may use another connection than its call, until that
  // connection counts as dead. The arrival of a call's handles is being confirmed.
  at->second.ask_from =
      node_.loop()->coarse_now() + (at->second.as_reply ? 2 * node_.options().liveness.dead_after
                                                        : node_.options().liveness.ping_after);
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

std::size_t References::in_flight() const {
  const std::lock_guard lock(mutex_);
  return sent_.size();
}

// Whether `fork` was sent to this node itself; then no other node need be notified. The caller must
// hold the lock.
bool References::arrived_here(const Fork& fork, const Reference& reference) {
  const auto at = find_sent(fork);
  if (at == sent_.end() || at->second.reference.get() != &reference) return false;
  sent_.erase(at);
  return true;
}

// The caller must hold the lock.
References::SentForks::iterator References::find_sent(std::uint64_t number) {
  const auto at = sent_.find(number >> 32);
  return at != sent_.end() && at->second.number == number ? at : sent_.end();
}

// The caller must hold the lock.
References::SentForks::iterator References::find_sent(const Fork& fork) {
  return fork.parent == node_.incarnation() ? find_sent(fork.number) : sent_.end();
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
    standing = node_.peers().standing(name);
  const TimePoint now = node_.loop()->coarse_now();
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

// Whether a fork whose message is over has ended; asks its receiver. The caller must hold the lock.
bool References::has_ended(Sent& sent, const PeerStanding& receiver, TimePoint now) {
  const NodeOptions& options = node_.options();
  if (sent.reference->link()->is_lost()) return true;
  // A receiver that could reach the owner has notified it by now.
  if (now >= sent.ask_from + std::max(options.liveness.rref_lease, options.liveness.dead_after))
    return true;
  // This node is its receiver, and has not decoded it.
  if (sent.receiver == node_.name()) return now >= sent.ask_from;
  if (sent.incarnation == 0) sent.incarnation = receiver.incarnation;
  const bool is_it = sent.incarnation == receiver.incarnation && receiver.incarnation != 0;
  UserPresence presence = UserPresence::away;
  if (is_it && receiver.live) {
    presence = UserPresence::there;
    if (now >= sent.ask_from) {
      outbox_.add(sent.receiver, ForkQuestion{.object = sent.reference->object(),
                                              .fork = {node_.incarnation(), sent.number}});
    }
  } else if (is_it ? receiver.dead : receiver.incarnation != 0) {
    presence = UserPresence::dead;
  }
  // It may have passed the handle on before it died (R5).
  return sent.absence.is_over(presence, now, options);
}

}  // namespace batchrpc::detail
