#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "batchrpc/node/call_context.hpp"
#include "batchrpc/rref/object_id.hpp"
#include "node/node_core.hpp"

namespace batchrpc::detail {

/// A node that holds objects of this one: one incarnation.
struct Holder {
  std::string name;
  std::uint64_t incarnation = 0;
  std::size_t objects = 0;
  std::uint32_t list = 0;  ///< the number of the last list of all that it holds (R6)
  bool listing = false;    ///< which has not ended
  /// From which on objects that it has created are not in it; none: it speaks of all.
  std::optional<ObjectId> not_listed{};
  std::optional<TimePoint> away_since{};
};

/// That an object is held.
struct Hold {
  Holder* holder = nullptr;
  TimePoint since{};
  std::uint32_t list = 0;  ///< in which the holder has told so last
};

/// Who holds objects of a node, and for how long it counts when it is not heard of. Not
/// thread-safe, but for overdue().
class Holders {
 public:
  Holder& at(const PeerIdentity& user);
  /// Null for one that holds nothing.
  [[nodiscard]] Holder* find(std::uint64_t incarnation);
  [[nodiscard]] const std::unordered_map<std::uint64_t, std::unique_ptr<Holder>>& all()
      const noexcept {
    return all_;
  }
  void erase(const Holder& holder) { all_.erase(holder.incarnation); }
  [[nodiscard]] std::vector<PeerIdentity> identities() const;

  /// How `user` is, by what `core` knows of it: not under a lock.
  enum class State : unsigned char { there, away, dead };
  [[nodiscard]] static State state_of(NodeCore& core, const PeerIdentity& user);
  /// Notes that; whether its holds are over (R4, R5).
  [[nodiscard]] static bool is_over(Holder& holder, State state, TimePoint now,
                                    const NodeOptions& options);

 private:
  std::unordered_map<std::uint64_t, std::unique_ptr<Holder>> all_;
};

}  // namespace batchrpc::detail
