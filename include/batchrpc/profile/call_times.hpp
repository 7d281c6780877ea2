#pragma once

#include <optional>

#include "batchrpc/base/export.hpp"
#include "batchrpc/trace/call_record.hpp"

namespace batchrpc {

/// When a call came how far: all on its caller's clock (of one that its callee alone tells of, on
/// that one's), none before the one above it.
struct BATCHRPC_EXPORT CallTimes {
  TimePoint called{};       ///< as in CallRecord
  TimePoint encoded{};      ///< the same
  TimePoint sent{};         ///< the same
  TimePoint received{};     ///< the same
  TimePoint begun{};        ///< the same
  TimePoint handled{};      ///< its handler has begun: its batch's, if it is a row of one
  TimePoint finished{};     ///< as in CallRecord
  TimePoint replied{};      ///< the same
  TimePoint ended{};        ///< the same
  Duration callee_ahead{};  ///< what the callee's times were set back by
  /// The callee's times, also after the end of a call without a reply: one that timed out, say, or
  /// that wants none. Above, such times are cut off at that end.
  struct Callee {
    TimePoint received{};  ///< as in CallRecord
    TimePoint begun{};     ///< the same
    TimePoint finished{};  ///< the same
  };
  Callee callee{};  ///< of a call with a reply the same as above

  /// Of a record, whose callee's clock is ahead by so much; if that is not given, then by what
  /// makes both ways of the call take equally long, whichever was held up: ClockAlignment, which
  /// looks at many calls, knows better.
  ///
  /// A time that is not known counts as the next one that is, so the phase before it has it all: a
  /// call whose callee told nothing is on the wire from when it was sent. Where a clock's offset
  /// would have a call received before it was sent, or replied before it was finished, all of the
  /// callee's times are moved by as little as puts that right.
  [[nodiscard]] static CallTimes of(const CallRecord& call,
                                    std::optional<Duration> callee_ahead = std::nullopt) noexcept;
  /// @{
  /// Whether caller and callee tell anything of the call.
  [[nodiscard]] static bool has_caller(const CallRecord& call) noexcept;
  [[nodiscard]] static bool has_callee(const CallRecord& call) noexcept;
  /// @}
};

}  // namespace batchrpc
