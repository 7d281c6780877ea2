#pragma once

#include <compare>
#include <cstdint>

namespace batchrpc::detail {

/// Names an object, or one reference to it, for all nodes and times: the incarnation of the node
/// that made it, and a count of its own.
struct ObjectId {
  std::uint64_t creator = 0;
  std::uint64_t number = 0;

  friend auto operator<=>(const ObjectId&, const ObjectId&) = default;
};

}  // namespace batchrpc::detail
