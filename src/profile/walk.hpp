#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "batchrpc/profile/recording.hpp"

namespace batchrpc::profile {

/// The spans of shared calls, which appear in each row of their batch.
using SharedSpans = std::unordered_set<std::uint64_t>;

/// Whether this call appears for the first time.
inline bool is_first(const CallRecord& call, SharedSpans& seen) {
  return !call.shared || seen.insert(call.span.span_number()).second;
}

template <typename Visit>
void for_each_call(const std::vector<CallRecord>& calls, Visit&& visit, const CallRecord* parent,
                   SharedSpans& seen) {
  for (const CallRecord& call : calls) {
    if (!is_first(call, seen)) continue;
    visit(call, parent);
    for_each_call(call.calls, visit, &call, seen);
  }
}

/// Calls `visit(call, parent)` for each of `calls` and everything they caused: a call before the
/// ones it caused, and shared calls once. `parent` is null for the outermost.
template <typename Visit>
void for_each_call(const std::vector<CallRecord>& calls, Visit&& visit) {
  SharedSpans seen;
  for_each_call(calls, visit, nullptr, seen);
}

/// The number of calls and operators missing from a recording.
inline std::uint64_t left_out(const Recording& recording) {
  std::uint64_t count = recording.left_out;
  for_each_call(recording.calls,
                [&](const CallRecord& call, const CallRecord*) { count += call.left_out; });
  return count;
}

}  // namespace batchrpc::profile
