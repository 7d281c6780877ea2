#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "batchrpc/profile/recording.hpp"

namespace batchrpc::profile {

/// Spans of shared calls, which each row of their batch has.
using SharedSpans = std::unordered_set<std::uint64_t>;

/// Whether it is the first time that this call comes along.
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

/// Calls `visit(call, parent)` for each of `calls` and all that they caused, a call before those,
/// shared ones once; `parent` is null for the outermost.
template <typename Visit>
void for_each_call(const std::vector<CallRecord>& calls, Visit&& visit) {
  SharedSpans seen;
  for_each_call(calls, visit, nullptr, seen);
}

/// How many calls and operators are missing from a recording.
inline std::uint64_t left_out(const Recording& recording) {
  std::uint64_t count = recording.left_out;
  for_each_call(recording.calls,
                [&](const CallRecord& call, const CallRecord*) { count += call.left_out; });
  return count;
}

}  // namespace batchrpc::profile
