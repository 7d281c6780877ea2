#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/random_bits.hpp"
#include "batchrpc/rref/reference.hpp"
#include "call/local_node.hpp"
#include "rref/object_table.hpp"
#include "rref/outbox.hpp"

namespace batchrpc::detail {

class References;

/// The owner of objects that this node refers to: one incarnation of a node. Thread-safe.
class OwnerLink {
 public:
  /// `table` lives as long as its node.
  OwnerLink(References& table, std::string name, std::uint64_t incarnation, bool is_self)
      : table_(table), name_(std::move(name)), incarnation_(incarnation), is_self_(is_self) {}

  [[nodiscard]] References& table() const noexcept { return table_; }

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] std::uint64_t incarnation() const noexcept { return incarnation_; }
  [[nodiscard]] bool is_self() const noexcept { return is_self_; }

  /// Why its objects are gone; null: it lives, as far as is known.
  [[nodiscard]] std::exception_ptr lost() const;
  [[nodiscard]] bool is_lost() const noexcept { return lost_.load(std::memory_order_acquire); }
  void lose(std::exception_ptr why);

 private:
  References& table_;
  const std::string name_;
  const std::uint64_t incarnation_;
  const bool is_self_;
  std::atomic<bool> lost_{false};
  mutable SmallMutex mutex_;
  std::exception_ptr why_;
};

/// The node's references to objects, and handles that it sent and that may not have arrived.
/// Thread-safe.
class References : public std::enable_shared_from_this<References> {
 public:
  References(LocalNode& node, ObjectTable& objects, Outbox& outbox)
      : node_(node), objects_(objects), outbox_(outbox), random_(node.options().simulation.seed) {}

  [[nodiscard]] std::shared_ptr<Reference> to_new_object(std::string_view owner);
  /// Makes a reference to an object of this process. Throws ShutDown.
  [[nodiscard]] std::shared_ptr<Reference> own(const ObjectClass& type,
                                               const std::shared_ptr<void>& object);
  [[nodiscard]] std::shared_ptr<Reference> received(const WireReference& wire);
  /// Called by a reference's destructor.
  void dropped(const Reference& reference);

  /// Sends a handle with `message`, and keeps it alive until it has arrived (R2).
  [[nodiscard]] WireReference send(std::shared_ptr<Reference> reference, Encoder& message);
  /// Events of the message that send() gave a handle.
  /// @{
  void left(std::uint64_t number, std::string_view receiver, std::uint64_t incarnation,
            bool as_reply) noexcept;
  void message_over(std::uint64_t number) noexcept;
  void taken_back(std::uint64_t number) noexcept;
  /// @}

  /// Notifications to owners of these names could not be sent and are lost.
  void not_told(const std::set<std::string>& owners);

  /// Messages of the peer `from`.
  /// @{
  void arrived(std::string_view from, const std::vector<Fork>& forks);
  /// Returns the forks that need not be kept.
  [[nodiscard]] std::vector<Fork> asked(const std::string& parent,
                                        const std::vector<ForkQuestion>& questions);
  void none(const PeerIdentity& owner, const std::vector<NoObject>& objects);
  /// @}

  /// Checks owners and forks (R3 to R7).
  void tick();
  /// Checks one owner, which is lost if its node has ended or was restarted.
  void look_after_owner(const OwnerLink& link);
  /// The node ends: the owners take over the handles that it sent (R5).
  void close();
  /// Releases the rest, as the last notification: handles that outlive the node are useless.
  void give_back();

  /// The number of objects this node refers to, by their owners' names.
  [[nodiscard]] std::map<std::string, std::size_t> count() const;
  /// The number of handles that were sent and may not have arrived.
  [[nodiscard]] std::size_t in_flight() const;

 private:
  // An owner of objects that this node holds, or held: its last notifications may be lost.
  struct Owner {
    std::string name;
    std::weak_ptr<OwnerLink> link{};
    std::uint64_t sessions_ended = 0;  // at the time of the last full report
    bool not_told = false;             // a notification was lost since then
  };
  // A handle that was sent.
  struct Sent {
    std::uint64_t number = 0;
    std::shared_ptr<Reference> reference{};
    std::string receiver{};
    std::uint64_t incarnation = 0;  // of the receiver, once known
    Absence absence{};
    TimePoint ask_from{};
    bool as_reply = false;
    bool left = false;
    bool over = false;
  };
  // The key is the upper half of a fork's number, which is a counter.
  using SentForks = std::unordered_map<std::uint64_t, Sent>;

  std::shared_ptr<OwnerLink> link_to(std::string_view name, std::uint64_t incarnation);
  SentForks::iterator find_sent(std::uint64_t number);
  SentForks::iterator find_sent(const Fork& fork);
  bool arrived_here(const Fork& fork, const Reference& reference);
  std::shared_ptr<Reference> find(const ObjectId& object) const;
  std::shared_ptr<Reference> make(const std::shared_ptr<OwnerLink>& link, const ObjectId& object);
  ObjectId next_object(std::uint64_t owner);
  void look_after_owners();
  void look_after_owner(const PeerIdentity& owner);
  void lose_owner(const PeerIdentity& owner, const std::string& why);
  void forget_unidentified(const PeerIdentity& owner);
  void look_after_forks();
  bool has_ended(Sent& sent, const PeerStanding& receiver, TimePoint now);
  void notify_all(std::uint64_t owner, const std::string& name);

  LocalNode& node_;
  ObjectTable& objects_;
  Outbox& outbox_;
  mutable std::mutex mutex_;
  std::unordered_map<ObjectId, Reference*, ObjectIdHash> all_;
  std::map<std::uint64_t, Owner> owners_;  // by incarnation
  SentForks sent_;
  std::uint32_t next_fork_ = 1;
  RandomBits random_;  // for numbers that other nodes must not guess
  std::uint64_t next_object_ = 1;
  bool closed_ = false;
};

}  // namespace batchrpc::detail
