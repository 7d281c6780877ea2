#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "batchrpc/base/executor.hpp"

namespace batchrpc {

/// The guarantees of docs/reliability.md, by their numbers.
enum class Guarantee : unsigned char {
  none = 0,
  at_most_once = 1,
  reconnect = 2,
  deadline = 3,
  cancellation = 4,
  bounded_memory = 5,
  dead_peer = 6,
  overload = 7,
  shutdown = 8,
  membership = 9,
  version_skew = 10,
};

/// An event of the connection to a peer.
struct ConnectionEvent {
  /// The kind of event.
  enum class Kind : unsigned char {
    connected,  ///< the first connection
    broke,
    failed,   ///< a failed attempt to connect
    resumed,  ///< the session continues over another connection
    silent,   ///< nothing has been received from the peer since then
  };
  Kind kind = Kind::connected;  ///< the kind of event
  TimePoint at{};               ///< when it happened; for `failed`, the last attempt
  std::uint64_t count = 1;  ///< `failed`: attempts in a row; `resumed`: frames sent again; else 1
  std::string why{};        ///< the reason of `broke` and of the last `failed` attempt; else empty
};

/// What a node knows about a failed call that it made. Times are on the node's clock. They may be
/// up to 10 ms early for a call with a time-out of a second or more.
struct CallDiagnostics {
  std::string function{};                 ///< the function's name, as it is exposed
  std::string peer{};                     ///< the peer that was to run it
  Guarantee guarantee = Guarantee::none;  ///< the guarantee by which it ended
  TimePoint called_at{};                  ///< when it was called
  TimePoint deadline = TimePoint::max();  ///< the end of its time-out; max() if it had none
  TimePoint ended_at{};                   ///< when it failed
  bool left = false;                      ///< whether it was sent, or may have been
  std::optional<TimePoint> left_at{};     ///< when it was sent; empty if not, or if not known
  /// If the call may be retried (CallOptions::retry): the number of this attempt, from 1 on,
  /// the number of attempts allowed, and the time of the first attempt. All other members describe
  /// this attempt only. For other calls 1, 1 and `called_at`.
  /// @{
  int attempt = 1;
  int attempts = 1;
  TimePoint first_called_at{};
  /// @}
  /// The latest events of the connection, oldest first, including some from before the call; null
  /// if there are none. Calls that end together share them.
  std::shared_ptr<const std::vector<ConnectionEvent>> events{};
};

}  // namespace batchrpc
