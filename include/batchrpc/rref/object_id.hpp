#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace batchrpc::detail {

/// Names an object for all nodes and times: the incarnations of the node that owns it and of the
/// node that had it made, and a count of the latter's.
struct ObjectId {
  std::uint64_t owner = 0;
  std::uint64_t creator = 0;
  std::uint64_t number = 0;

  friend auto operator<=>(const ObjectId&, const ObjectId&) = default;
};

struct ObjectIdHash {
  // Incarnations are random, and numbers follow each other: so do the places in a table.
  std::size_t operator()(const ObjectId& id) const noexcept {
    return static_cast<std::size_t>(id.creator + id.number);
  }
};

}  // namespace batchrpc::detail
