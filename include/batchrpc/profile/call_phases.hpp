#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "batchrpc/base/export.hpp"
#include "batchrpc/profile/call_times.hpp"

namespace batchrpc {

/// The time a call spent in each phase. The phases add up, to the nanosecond, to its time from
/// `called` to `ended`. None is negative, even if parts of a call are not known.
struct BATCHRPC_EXPORT CallPhases {
  Duration encode{};  ///< encoding its arguments
  Duration queued{};  ///< then, until its message was given to the socket
  Duration wire{};    ///< then, until the callee had all of it; the whole remote part if the callee
                      ///< reported nothing
  Duration waiting{};  ///< then, until a thread of the callee began with it
  Duration batch{};    ///< then, until its batch ran; zero for a call in no batch
  Duration handler{};  ///< then, until the function had its result
  Duration reply{};    ///< then, until its caller had the whole reply
  Duration decode{};   ///< decoding the reply

  /// The sum of the phases.
  [[nodiscard]] Duration total() const noexcept;

  /// The phases between a call's times; see CallTimes.
  /// @{
  [[nodiscard]] static CallPhases of(const CallTimes& times) noexcept;
  [[nodiscard]] static CallPhases of(const CallRecord& call,
                                     std::optional<Duration> callee_ahead = std::nullopt) noexcept {
    return of(CallTimes::of(call, callee_ahead));
  }
  /// @}

  friend bool operator==(const CallPhases&, const CallPhases&) = default;
};

/// A phase and its name.
struct CallPhase {
  std::string_view name{};        ///< "encode"
  Duration CallPhases::*field{};  ///< its member of CallPhases
};

/// All phases, in their order.
inline constexpr std::array<CallPhase, 8> kCallPhases{{
    {"encode", &CallPhases::encode},
    {"queued", &CallPhases::queued},
    {"wire", &CallPhases::wire},
    {"waiting", &CallPhases::waiting},
    {"batch", &CallPhases::batch},
    {"handler", &CallPhases::handler},
    {"reply", &CallPhases::reply},
    {"decode", &CallPhases::decode},
}};

}  // namespace batchrpc
