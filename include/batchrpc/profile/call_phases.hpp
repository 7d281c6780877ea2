#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "batchrpc/base/export.hpp"
#include "batchrpc/profile/call_times.hpp"

namespace batchrpc {

/// How long a call spent on what. Together that is all of its time, from `called` to `ended`, to
/// the nanosecond, and none is negative: whatever is not known of a call.
struct BATCHRPC_EXPORT CallPhases {
  Duration encode{};   ///< its arguments were encoded
  Duration queued{};   ///< until its message was given to the socket
  Duration wire{};     ///< until the callee had it, as a whole; all that is remote, if the callee
                       ///< told nothing
  Duration waiting{};  ///< there, until a thread began with it
  Duration batch{};    ///< until its batch was run; zero for a call in no batch
  Duration handler{};  ///< until the function had its result
  Duration reply{};    ///< until its caller had the reply, as a whole
  Duration decode{};   ///< that was decoded

  /// All of them.
  [[nodiscard]] Duration total() const noexcept;

  /// See CallTimes, which says how they come about.
  /// @{
  [[nodiscard]] static CallPhases of(const CallTimes& times) noexcept;
  [[nodiscard]] static CallPhases of(const CallRecord& call,
                                     std::optional<Duration> callee_ahead = std::nullopt) noexcept {
    return of(CallTimes::of(call, callee_ahead));
  }
  /// @}

  friend bool operator==(const CallPhases&, const CallPhases&) = default;
};

/// A phase by its name.
struct CallPhase {
  std::string_view name{};        ///< "encode"
  Duration CallPhases::*field{};  ///< where it is
};

/// All of them, in the order in which they come.
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
