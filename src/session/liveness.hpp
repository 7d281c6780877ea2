#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>

#include "batchrpc/transport/loop.hpp"
#include "session/session_link.hpp"

namespace batchrpc {

/// Whether the peer of a session is heard, and how long a frame takes there and back. Runs on the
/// loop, but for round_trip(), which any thread may call.
class Liveness {
 public:
  explicit Liveness(SessionLink& link) : link_(link) {}

  /// The peer has said hello on a connection.
  void attached();
  /// That connection has broken.
  void broke(const std::string& why);
  /// Once a ping interval: asks the peer whether it lives. Returns for how many intervals it has
  /// been silent.
  int tick();
  /// The peer has answered the ping of that id.
  void pong(std::uint64_t id);

  /// For how many intervals the peer had been silent at the last tick().
  [[nodiscard]] int silent_ticks() const noexcept { return silent_ticks_; }
  /// When the peer was last heard, as far as the pings tell. For as long as this node did nothing,
  /// no ping could be answered: that time does not count.
  [[nodiscard]] TimePoint heard_at() const;
  [[nodiscard]] TimePoint attached_at() const noexcept { return attached_at_; }
  [[nodiscard]] TimePoint broke_at() const noexcept { return broke_at_; }
  /// Smoothed over the pings that were answered; zero: none was.
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
