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

/// How a node is, as far as another can tell.
enum class UserPresence : unsigned char { there, away, dead };

/// Since when a node is not there.
class Absence {
 public:
  /// Notes how it is now; whether what it has counts no more (R4, R5).
  [[nodiscard]] bool is_over(UserPresence presence, TimePoint now, const NodeOptions& options);
  [[nodiscard]] bool has_begun() const noexcept { return away_since_.has_value(); }

 private:
  std::optional<TimePoint> away_since_{};
  std::optional<TimePoint> dead_since_{};
};

/// A node that holds objects of this one: one incarnation.
struct Holder {
  std::string name;
  std::uint64_t incarnation = 0;
  std::size_t objects = 0;
  std::uint64_t next_update = 0;  ///< those of a lower number come late (R1)
  std::uint32_t list = 0;         ///< the number of the last list of all that it holds (R6)
  bool listing = false;           ///< which has not ended
  bool listed = false;            ///< which has: what is not in it is to be released
  /// From which on objects that it has created are not in it; none: it speaks of all.
  std::optional<ObjectId> not_listed{};
  Absence absence{};
  bool over = false;  ///< it holds nothing any more (R4, R5)
};

/// That an object is held.
struct Hold {
  Holder* holder = nullptr;
  TimePoint since{};
  std::uint32_t list = 0;  ///< in which the holder has told so last

  /// Whether its holder, which is over or listed, does not hold `object` any more.
  [[nodiscard]] bool has_ended(const ObjectId& object) const;
};

/// Who holds objects of a node, and what was heard of them: for as long as they are there, or what
/// they hold counts. Not thread-safe.
class Holders {
 public:
  Holder& at(const PeerIdentity& user);
  /// Null for one that has told nothing.
  [[nodiscard]] Holder* find(std::uint64_t incarnation);
  [[nodiscard]] std::vector<PeerIdentity> identities() const;

  /// How `user` is, by what `node` knows of it: not under a lock.
  [[nodiscard]] static UserPresence presence_of(LocalNode& node, const PeerIdentity& user);

  /// Whether objects are to be released: of those who are over, or listed.
  [[nodiscard]] bool any_ended() const;
  /// That was done.
  void forget_ended();

 private:
  std::unordered_map<std::uint64_t, std::unique_ptr<Holder>> all_;
};

}  // namespace batchrpc::detail
