#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

#include "batchrpc/base/export.hpp"

namespace batchrpc::detail {

/// Names an object for all nodes and times: the incarnations of the node that owns it and of the
/// node that had it made, and a count of the latter's.
struct ObjectId {
  std::uint64_t owner = 0;
  std::uint64_t creator = 0;
  std::uint64_t number = 0;

  friend auto operator<=>(const ObjectId&, const ObjectId&) = default;
};

/// Another one in each process, since peers choose the ids.
struct ObjectIdHash {
  BATCHRPC_EXPORT std::size_t operator()(const ObjectId& id) const noexcept;
};

}  // namespace batchrpc::detail
