#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "batchrpc/base/export.hpp"
#include "batchrpc/trace/call_record.hpp"

namespace batchrpc {

/// Records of calls, from one node or several.
struct Recording {
  std::vector<CallRecord> calls{};  ///< calls that no recorded call made; these contain the others
  std::uint64_t left_out = 0;  ///< calls and operators not kept for lack of room, beyond those that
                               ///< the calls count themselves
  std::uint64_t sampled = 1;   ///< one in `sampled` calls was recorded
  std::string node{};          ///< the node that gathered it
  int rank = -1;               ///< that node's rank; -1: none, or not known
  /// Calls that serve only to align the nodes' clocks.
  std::vector<CallRecord> clock_samples{};
};

/// Adds another recording, such as another node's. A call that is in both (same span id) is kept
/// once, with the calls it caused according to either. If either recording says that another call
/// caused it, or names its parent, it goes under that call. The caller's and the callee's times
/// come from the recording that has them; if both do, from the more complete one. Calls without a
/// span id are all kept. `sampled` becomes the larger of the two.
BATCHRPC_EXPORT void merge(Recording& into, Recording&& other);

}  // namespace batchrpc
