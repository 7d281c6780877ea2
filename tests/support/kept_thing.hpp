#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "batchrpc/batchrpc.hpp"

/// Objects that processes create, pass on and keep, for tests that kill those processes meanwhile.
namespace kept {

class Thing {
 public:
  explicit Thing(std::uint64_t id) : id_(id) { ++alive; }
  Thing(const Thing&) = delete;
  Thing& operator=(const Thing&) = delete;
  ~Thing() { --alive; }
  /// The id that it was created with. It shows that no other object has answered.
  std::uint64_t id() { return id_; }
  /// Holds only objects with smaller ids. Objects that hold each other would live forever.
  void hold(std::uint64_t other_id, batchrpc::RRef<Thing> other) {
    if (other_id < id_) held_ = std::move(other);
  }

  static inline std::atomic<int> alive{0};

 private:
  const std::uint64_t id_;
  batchrpc::RRef<Thing> held_;
};

using Held = std::pair<std::uint64_t, batchrpc::RRef<Thing>>;

/// A node that creates, keeps, passes on and uses such objects at random.
class Keeper : public std::enable_shared_from_this<Keeper> {
 public:
  Keeper(const batchrpc::Node& node, std::uint64_t seed) : node_(node), random_(seed) {}

  void expose() {
    node_.expose_class<Thing(std::uint64_t)>();
    node_.expose<&Thing::id>();
    node_.expose<&Thing::hold>();
    node_.expose("take",
                 [self = shared_from_this()](std::uint64_t id, batchrpc::RRef<Thing> handle) {
                   self->keep({id, std::move(handle)});
                 });
    node_.expose("ask", [self = shared_from_this()] { return self->some(); });
  }

  /// Does one random action, with a peer or alone. Records failures in `wrong`.
  void act() {
    const std::string peer = some_peer();
    if (peer.empty()) return;
    const Held held = some();
    switch (held.second ? below(6) : 0) {
      case 0: {
        const std::uint64_t id = below(1'000'000'000) + 1;
        keep({id, node_.create<Thing>(peer, id)});
        return;
      }
      case 1:
        node_.call<void(std::uint64_t, batchrpc::RRef<Thing>)>(peer, "take", held.first,
                                                               held.second);
        return;
      case 2:
        node_.call<Held()>(peer, "ask")
            .then([self = shared_from_this()](batchrpc::Result<Held> got) {
              if (got) self->keep(std::move(got).value());
            });
        return;
      case 3: {
        const Held other = some();
        held.second.call<&Thing::hold>(other.first, other.second);
      }
        return;
      default:
        held.second.call<&Thing::id>().then(
            [self = shared_from_this(), id = held.first](batchrpc::Result<std::uint64_t> got) {
              if (got && got.value() != id) self->note("another object has answered");
              if (!got && !may_be(got.code())) self->note("a call ends in " + got.message());
              if (got) ++self->answered;
            });
    }
  }

  /// Releases all handles, and keeps none from now on.
  void drop() {
    std::vector<Held> dropped;
    const std::lock_guard lock(mutex_);
    closed_ = true;
    dropped.swap(held_);
  }
  [[nodiscard]] std::string wrong() {
    const std::lock_guard lock(mutex_);
    return wrong_;
  }

  std::atomic<std::uint64_t> answered{0};

 private:
  static bool may_be(batchrpc::ErrorCode code) {
    using enum batchrpc::ErrorCode;
    return code == peer_lost || code == not_sent || code == owner_lost || code == unknown ||
           code == rref_expired || code == not_found || code == shut_down || code == timed_out;
  }
  std::uint64_t below(std::uint64_t bound) {
    const std::lock_guard lock(mutex_);
    return random_() % bound;
  }
  std::string some_peer() {
    std::vector<std::string> names{node_.name()};
    for (const batchrpc::PeerInfo& peer : node_.peers()) {
      if (peer.state != batchrpc::PeerState::lost) names.push_back(peer.name);
    }
    return names.at(below(names.size()));
  }
  Held some() {
    const std::lock_guard lock(mutex_);
    return held_.empty() ? Held{} : held_.at(random_() % held_.size());
  }
  void keep(Held held) {
    constexpr std::size_t kMost = 20;
    Held dropped;
    if (!held.second) return;
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    if (held_.size() < kMost) return held_.push_back(std::move(held));
    dropped = std::exchange(held_.at(random_() % kMost), std::move(held));
  }
  void note(const std::string& what) {
    const std::lock_guard lock(mutex_);
    wrong_ = what;
  }

  const batchrpc::Node& node_;
  std::mutex mutex_;
  std::mt19937_64 random_;
  std::vector<Held> held_;
  std::string wrong_;
  bool closed_ = false;
};

}  // namespace kept
