#pragma once

#include <cstdint>
#include <vector>

#include "batchrpc/profile/recording.hpp"

namespace batchrpc::profile {

/// Calls `visit(call, parent)` for each of `calls` and all that they caused, a call before those;
/// `parent` is null for the outermost.
template <typename Visit>
void for_each_call(const std::vector<CallRecord>& calls, Visit&& visit,
                   const CallRecord* parent = nullptr) {
  for (const CallRecord& call : calls) {
    visit(call, parent);
    for_each_call(call.calls, visit, &call);
  }
}

/// A span's id as a number, as in CallRecord::parent.
inline std::uint64_t span_number(const TraceContext& span) {
  std::uint64_t number = 0;
  for (const std::uint8_t byte : span.span_id)
    number = number << 8 | byte;
  return number;
}

/// How many calls and operators are missing from a recording.
inline std::uint64_t left_out(const Recording& recording) {
  std::uint64_t count = recording.left_out;
  for_each_call(recording.calls,
                [&](const CallRecord& call, const CallRecord*) { count += call.left_out; });
  return count;
}

}  // namespace batchrpc::profile
