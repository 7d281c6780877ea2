#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "batchrpc/base/executor.hpp"

namespace batchrpc {

/// The promises of docs/reliability.md, by their numbers.
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

/// Something that happened to the connection with a peer.
struct ConnectionEvent {
  /// What it was.
  enum class Kind : unsigned char {
    connected,  ///< for the first time
    broke,
    failed,   ///< a try to connect
    resumed,  ///< the session goes on over another connection
    silent,   ///< since then nothing has been heard
  };
  Kind kind = Kind::connected;  ///< what it was
  TimePoint at{};               ///< of `failed`, the last one
  std::uint64_t count = 1;  ///< `failed`: tries, one after the other; `resumed`: frames sent again
  std::string why{};        ///< `broke`, `failed` (the last one); else empty
};

/// What a node knows of a call of its own that has failed. Times are of the node's clock, and up to
/// 10 ms early for a call with a time-out of a second or more.
struct CallDiagnostics {
  std::string function{};                 ///< as it is exposed
  std::string peer{};                     ///< who was to run it
  Guarantee guarantee = Guarantee::none;  ///< by which it ended
  TimePoint called_at{};                  ///< when it was called
  TimePoint deadline = TimePoint::max();  ///< by its time-out; max(): none
  TimePoint ended_at{};                   ///< when it failed
  bool left = false;                      ///< it was sent, or may have been
  std::optional<TimePoint> left_at{};  ///< nothing: it has not, or had to wait for the peer to read
  /// Of a call that may be tried again (CallOptions::retry): which attempt this was, the first
  /// being 1, of how many, and when the first was made. What is above and below is of this attempt
  /// alone. Of others 1, 1 and `called_at`.
  /// @{
  int attempt = 1;
  int attempts = 1;
  TimePoint first_called_at{};
  /// @}
  /// The latest events of the connection, oldest first, also from before the call; null: none.
  /// Calls that end together share them.
  std::shared_ptr<const std::vector<ConnectionEvent>> events{};
};

}  // namespace batchrpc
