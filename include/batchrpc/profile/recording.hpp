#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "batchrpc/base/export.hpp"
#include "batchrpc/trace/call_record.hpp"

namespace batchrpc {

/// What was recorded of calls, by one node or by several.
struct Recording {
  std::vector<CallRecord> calls{};  ///< those that no recorded call made; the others are in these
  std::uint64_t left_out = 0;       ///< calls and operators that were not kept, for want of room,
                                    ///< beside those that the calls tell of themselves
  std::uint64_t sampled = 1;        ///< one in so many calls was recorded
  std::string node{};               ///< who has gathered it
  int rank = -1;                    ///< the same; -1: none, or not known
  /// Calls that tell of nodes' clocks, and are else of no interest.
  std::vector<CallRecord> clock_samples{};
};

/// Adds to a recording what another one has, such as another node's. A call that is in both, by its
/// span id, is kept once: with what it caused if either says so, among what caused it if either
/// says so or it names that one as its parent, and with the caller's times and the callee's of
/// whichever has them; of whichever tells more, where both do. Calls without a span id are all
/// kept. Of two numbers `sampled` the larger remains.
BATCHRPC_EXPORT void merge(Recording& into, Recording&& other);

}  // namespace batchrpc
