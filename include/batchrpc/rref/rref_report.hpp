#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "batchrpc/base/executor.hpp"

namespace batchrpc {

/// A node that holds RRefs to objects of another, and of how many of one type.
struct RRefHolder {
  std::string node{};             ///< its name
  std::uint64_t incarnation = 0;  ///< differs between two nodes that bore one name
  std::size_t objects = 0;        ///< how many of the type it holds
  Duration held_for{};            ///< how long it has held the oldest of them
  bool away = false;  ///< dead, or out of reach: its RRefs expire (NodeOptions::rref_lease)
};

/// The objects of one type that a node owns.
struct OwnedRRefs {
  std::string type{};                 ///< the class; empty: their creation has not come yet
  std::size_t objects = 0;            ///< how many there are
  std::size_t held_here = 0;          ///< of them, by this node's own RRefs
  std::size_t waiting_calls = 0;      ///< of their methods, not begun
  std::vector<RRefHolder> holders{};  ///< other nodes, by their names
};

/// The objects of another node that this one holds RRefs to.
struct UsedRRefs {
  std::string owner{};      ///< that node's name
  std::size_t objects = 0;  ///< how many of its objects
};

/// What Node::rrefs() says.
struct RRefReport {
  std::vector<OwnedRRefs> owned{};  ///< by type, in order of their names
  std::vector<UsedRRefs> used{};    ///< by owner, in order of their names
  std::size_t in_flight = 0;        ///< handles that were sent and may not have arrived
};

}  // namespace batchrpc
