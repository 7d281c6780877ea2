#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>

#include "batchrpc/transport/loop.hpp"
#include "session/session_link.hpp"

namespace batchrpc {

/// Tracks whether the peer of a session is heard, and how long a frame takes there and back. Runs
/// on the loop, except round_trip(), which any thread may call.
class Liveness {
 public:
  explicit Liveness(SessionLink& link) : link_(link) {}

  /// The peer has said hello on a connection.
  void attached();
  /// That connection has broken.
  void broke(const std::string& why);
  /// Sends a ping. Its pong acknowledges, as every frame does, what the peer has received.
  void ping();
  /// Sends a ping. Called once per ping interval. Returns the number of intervals for which the
  /// peer has been silent.
  int tick();
  /// The peer has answered the ping of that id.
  void pong(std::uint64_t id);

  /// The number of intervals for which the peer had been silent at the last tick().
  [[nodiscard]] int silent_ticks() const noexcept { return silent_ticks_; }
  /// The time at which the peer was last heard, as far as the pings show. Time in which this node
  /// did not run does not count, since no ping could be answered.
  [[nodiscard]] TimePoint heard_at() const;
  [[nodiscard]] TimePoint attached_at() const noexcept { return attached_at_; }
  [[nodiscard]] TimePoint broke_at() const noexcept { return broke_at_; }
  /// The average over the answered pings, smoothed; zero: none was answered.
  [[nodiscard]] Duration round_trip() const noexcept {
    return Duration(round_trip_.load(std::memory_order_relaxed));
  }

 private:
  SessionLink& link_;
  TimePoint attached_at_ = TimePoint::max();
  TimePoint heard_at_{};
  TimePoint broke_at_{};
  int silent_ticks_ = 0;
  std::atomic<Duration::rep> round_trip_{0};
};

}  // namespace batchrpc
