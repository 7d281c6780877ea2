#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "wire/record.hpp"

/// The reserved functions by which a node asks another one for what is recorded there.
namespace batchrpc::recorded_calls {

inline constexpr std::string_view kRecorded = "batchrpc.recorded";
/// A page of the rest of a store: without the calls, which are counted in `left_out`.
inline constexpr std::string_view kRest = "batchrpc.recorded.rest";

/// A part of it.
struct Page {
  std::vector<wire::CallBody> calls{};
  std::uint64_t next_store = 0;  ///< where the next one begins
  std::uint64_t next_call = 0;
  bool more = false;  ///< there is a next one
  std::uint64_t left_out = 0;
  std::uint64_t sampled = 1;
  std::int64_t received = 0;  ///< when it was asked for, on the clock of who answers
  std::int64_t finished = 0;  ///< and answered
};

/// So many operators and calls make a page.
inline constexpr std::size_t kPageEvents = 10'000;

}  // namespace batchrpc::recorded_calls
