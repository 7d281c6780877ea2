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

/// The position of a call in a trace over several services: W3C Trace Context, level 1
/// (https://www.w3.org/TR/trace-context/). It arrives with a call, and the calls that its handler
/// makes carry it on. It has trivial members only.
struct BATCHRPC_EXPORT TraceContext {
  std::array<std::uint8_t, 16> trace_id{};  ///< id of the whole trace; all zero: none
  std::array<std::uint8_t, 8> span_id{};    ///< id of the call, or of its caller
  std::uint8_t flags = 0;                   ///< bit 0: the service that began the trace records it

  /// The span's id as a big-endian number, as in CallRecord::parent; 0: none.
  [[nodiscard]] std::uint64_t span_number() const noexcept;
  /// Whether both ids are set.
  [[nodiscard]] bool valid() const noexcept {
    const auto halves = std::bit_cast<std::array<std::uint64_t, 2>>(trace_id);
    return (halves[0] | halves[1]) != 0 && std::bit_cast<std::uint64_t>(span_id) != 0;
  }
  /// The value of the header `traceparent`: "00-<32 digits>-<16 digits>-<2 digits>".
  [[nodiscard]] std::string traceparent() const;
  /// Reads such a value. Of later versions it reads the common fields. Returns nothing if it is
  /// malformed or an id is all zero.
  [[nodiscard]] static std::optional<TraceContext> parse(std::string_view traceparent) noexcept;

  friend bool operator==(const TraceContext&, const TraceContext&) = default;
};

}  // namespace batchrpc
