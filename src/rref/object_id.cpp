#include "batchrpc/rref/object_id.hpp"

#include "base/random_odd.hpp"

namespace batchrpc::detail {

// Dietzfelbinger et al., "A Reliable Randomized Algorithm for the Closest-Pair Problem", 1997. A
// creator's objects have consecutive numbers, and so have their hashes, 4096 at a time.
std::size_t ObjectIdHash::operator()(const ObjectId& id) const noexcept {
  struct Multipliers {
    std::uint64_t owner = random_odd();
    std::uint64_t creator = random_odd();
    std::uint64_t number = random_odd();
  };
  static const Multipliers by{};
  constexpr unsigned kFollowing = 12;  // bits
  const std::uint64_t mixed =
      id.owner * by.owner + id.creator * by.creator + (id.number >> kFollowing) * by.number;
  return static_cast<std::size_t>((mixed >> 32) + id.number % (1U << kFollowing));
}

}  // namespace batchrpc::detail
