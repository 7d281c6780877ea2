#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "wire/record.hpp"

/// The reserved functions by which a node asks another one for its recorded calls.
namespace batchrpc::recorded_calls {

inline constexpr std::string_view kRecorded = "batchrpc.recorded";
/// Returns the rest of a store as a page without calls; `left_out` is their number.
inline constexpr std::string_view kRest = "batchrpc.recorded.rest";

/// A part of the recorded calls.
struct Page {
  std::vector<wire::CallBody> calls{};
  std::uint64_t next_store = 0;  ///< where the next page begins
  std::uint64_t next_call = 0;
  bool more = false;  ///< whether there is a next page
  std::uint64_t left_out = 0;
  std::uint64_t sampled = 1;
  std::int64_t received = 0;  ///< when the request came, on the clock of the answering node
  std::int64_t finished = 0;  ///< when it was answered, on that clock
};

/// The number of operators and calls in a page.
inline constexpr std::size_t kPageEvents = 10'000;

}  // namespace batchrpc::recorded_calls
