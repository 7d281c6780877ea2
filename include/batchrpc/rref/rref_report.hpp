#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "batchrpc/base/executor.hpp"

namespace batchrpc {

/// A node that holds RRefs to objects of another node, with the number of objects of one type.
struct RRefHolder {
  std::string node{};             ///< its name
  std::uint64_t incarnation = 0;  ///< differs between two nodes that had the same name
  std::size_t objects = 0;        ///< number of objects of the type that it holds
  Duration held_for{};            ///< how long it has held the oldest of them
  bool away = false;  ///< dead or out of reach: its RRefs expire (NodeOptions::liveness.rref_lease)
};

/// The objects of one type that a node owns.
struct OwnedRRefs {
  std::string type{};                 ///< the class; empty: their creation has not arrived yet
  std::size_t objects = 0;            ///< number of objects
  std::size_t held_here = 0;          ///< objects that this node's own RRefs hold
  std::size_t waiting_calls = 0;      ///< calls of their methods that have not started
  std::vector<RRefHolder> holders{};  ///< other nodes, sorted by name
};

/// The objects of another node that this one holds RRefs to.
struct UsedRRefs {
  std::string owner{};      ///< that node's name
  std::size_t objects = 0;  ///< number of its objects
};

/// The result of rref_report().
struct RRefReport {
  std::vector<OwnedRRefs> owned{};  ///< sorted by type
  std::vector<UsedRRefs> used{};    ///< sorted by owner
  std::size_t in_flight = 0;        ///< handles that were sent and may not have arrived
};

}  // namespace batchrpc
