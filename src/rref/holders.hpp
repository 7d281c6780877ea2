#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "batchrpc/call/call_context.hpp"
#include "batchrpc/rref/object_id.hpp"
#include "call/local_node.hpp"

namespace batchrpc::detail {

/// Another node's state, as far as this one can tell.
enum class UserPresence : unsigned char { there, away, dead };

/// Tracks how long a node has been absent.
class Absence {
 public:
  /// Records the current state. Returns whether the node's holds have ended (R4, R5).
  [[nodiscard]] bool is_over(UserPresence presence, TimePoint now, const NodeOptions& options);
  [[nodiscard]] bool has_begun() const noexcept { return away_since_.has_value(); }

 private:
  std::optional<TimePoint> away_since_{};
  std::optional<TimePoint> dead_since_{};
};

/// One incarnation of a node that holds objects of this one.
struct Holder {
  std::string name;
  std::uint64_t incarnation = 0;
  std::size_t objects = 0;
  std::uint64_t next_update = 0;  ///< updates with a lower number are late (R1)
  std::uint32_t list = 0;         ///< the number of its last list of all objects it holds (R6)
  bool listing = false;           ///< the list has begun, but not ended
  bool listed = false;            ///< the list has ended: objects not in it are to be released
  /// The first of the objects it created that the list leaves out; empty: it covers all.
  std::optional<ObjectId> not_listed{};
  Absence absence{};
  bool over = false;  ///< its holds have ended (R4, R5)
};

/// A record that an object is held.
struct Hold {
  Holder* holder = nullptr;
  TimePoint since{};
  std::uint32_t list = 0;  ///< the last list in which the holder named the object

  /// Whether the hold has ended because its holder is over, or listed without `object`.
  [[nodiscard]] bool has_ended(const ObjectId& object) const;
};

/// The holders of a node's objects, with their reports. Each is kept while it is there or its holds
/// count. Not thread-safe.
class Holders {
 public:
  Holder& at(const PeerIdentity& user);
  /// Null for a node that has reported nothing.
  [[nodiscard]] Holder* find(std::uint64_t incarnation);
  [[nodiscard]] std::vector<PeerIdentity> identities() const;

  /// The state of `user` as known to `node`. The caller must not hold a lock.
  [[nodiscard]] static UserPresence presence_of(LocalNode& node, const PeerIdentity& user);

  /// Whether objects are to be released, because a holder is over or listed.
  [[nodiscard]] bool any_ended() const;
  /// Whether one of them holds objects.
  [[nodiscard]] bool any_ended_holds() const;
  /// Call this after releasing them.
  void forget_ended();

 private:
  std::unordered_map<std::uint64_t, std::unique_ptr<Holder>> all_;
};

}  // namespace batchrpc::detail
