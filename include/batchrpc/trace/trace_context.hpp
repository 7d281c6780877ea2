#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "batchrpc/base/export.hpp"

namespace batchrpc {

/// Where a call stands in a trace over several services: W3C Trace Context, level 1
/// (https://www.w3.org/TR/trace-context/). It comes with a call, and goes on with the calls that
/// its handler makes. Trivial members only.
struct BATCHRPC_EXPORT TraceContext {
  std::array<std::uint8_t, 16> trace_id{};  ///< of the whole trace; all zero: none
  std::array<std::uint8_t, 8> span_id{};    ///< of the call, or of what called it
  std::uint8_t flags = 0;                   ///< bit 0: it is recorded by who began it

  /// The span's id as a big-endian number, as CallRecord::parent has it; 0: none.
  [[nodiscard]] std::uint64_t span_number() const noexcept;
  /// Whether both ids are there.
  [[nodiscard]] bool valid() const noexcept {
    const auto halves = std::bit_cast<std::array<std::uint64_t, 2>>(trace_id);
    return (halves[0] | halves[1]) != 0 && std::bit_cast<std::uint64_t>(span_id) != 0;
  }
  /// As the header `traceparent`: "00-<32 digits>-<16 digits>-<2 digits>".
  [[nodiscard]] std::string traceparent() const;
  /// Reads such a header; of later versions what they have in common. Nothing if it is malformed or
  /// an id is all zero.
  [[nodiscard]] static std::optional<TraceContext> parse(std::string_view traceparent) noexcept;

  friend bool operator==(const TraceContext&, const TraceContext&) = default;
};

}  // namespace batchrpc
