#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

#include "batchrpc/base/export.hpp"

namespace batchrpc::detail {

/// Identifies an object on all nodes, for all time. Consists of the incarnation of its owner, the
/// incarnation of the node that requested its creation, a count of that node, and random bits. A
/// node knows them only if it was given a handle.
struct ObjectId {
  std::uint64_t owner = 0;
  std::uint64_t creator = 0;
  std::uint64_t number = 0;
  std::uint64_t key = 0;

  friend auto operator<=>(const ObjectId&, const ObjectId&) = default;
};

/// The hash differs in each process, since peers choose the ids.
struct ObjectIdHash {
  BATCHRPC_EXPORT std::size_t operator()(const ObjectId& id) const noexcept;
};

}  // namespace batchrpc::detail
