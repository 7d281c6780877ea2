#pragma once

#include <optional>

#include "batchrpc/base/export.hpp"
#include "batchrpc/trace/call_record.hpp"

namespace batchrpc {

/// The times at which a call reached each stage, all on its caller's clock, in ascending order. If
/// only the callee reported the call, they are on the callee's clock.
struct BATCHRPC_EXPORT CallTimes {
  TimePoint called{};       ///< as in CallRecord
  TimePoint encoded{};      ///< the same
  TimePoint sent{};         ///< the same
  TimePoint received{};     ///< the same
  TimePoint begun{};        ///< the same
  TimePoint handled{};      ///< its handler began: its batch's, if it is a row of one
  TimePoint finished{};     ///< as in CallRecord
  TimePoint replied{};      ///< the same
  TimePoint ended{};        ///< the same
  Duration callee_ahead{};  ///< subtracted from the callee's times
  /// The callee's times, including those after the end of a call without a reply, such as one that
  /// timed out or wants none. The members above are cut off at that end.
  struct Callee {
    TimePoint received{};  ///< as in CallRecord
    TimePoint begun{};     ///< the same
    TimePoint finished{};  ///< the same
  };
  Callee callee{};  ///< for a call with a reply, the same as above

  /// Returns the times of a record whose callee's clock is ahead by `callee_ahead`. Without it, the
  /// offset is chosen so that both ways of the call take equally long, although one of them may
  /// have been delayed. ClockAlignment, which uses many calls, is more accurate.
  ///
  /// An unknown time counts as the next known one, so the phase before it gets all of that time: a
  /// call whose callee reported nothing is on the wire from when it was sent. An offset may place a
  /// call's arrival before its sending, or its reply before its end. Then all of the callee's times
  /// are moved by the least amount that corrects this.
  [[nodiscard]] static CallTimes of(const CallRecord& call,
                                    std::optional<Duration> callee_ahead = std::nullopt) noexcept;
  /// @{
  /// Whether the caller, or the callee, reported anything about the call.
  [[nodiscard]] static bool has_caller(const CallRecord& call) noexcept;
  [[nodiscard]] static bool has_callee(const CallRecord& call) noexcept;
  /// @}
};

}  // namespace batchrpc
