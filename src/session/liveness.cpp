#include "session/liveness.hpp"

namespace batchrpc {
namespace {

// Marks the id of a ping. The other bits are the nanoseconds since its connection began. The pong
// repeats the id. The rest of a call that was retracted looks like a pong too, but has the call's
// id, which is smaller.
constexpr std::uint64_t kEcho = std::uint64_t{1} << 63;

}  // namespace

void Liveness::attached() {
  silent_ticks_ = 0;
  heard_at_ = attached_at_ = link_.loop()->now();
}

void Liveness::broke(const std::string& why) {
  broke_at_ = link_.loop()->now();
  link_.log().add({.kind = ConnectionEvent::Kind::broke, .at = broke_at_, .why = why});
}

int Liveness::tick() {
  const TimePoint now = link_.loop()->now();
  const bool was_silent = silent_ticks_ > 0;
  silent_ticks_ = link_.connection().take_heard() ? 0 : silent_ticks_ + 1;
  if (silent_ticks_ == 1) {
    link_.log().add({.kind = ConnectionEvent::Kind::silent, .at = heard_at_});
  } else if (silent_ticks_ == 0 && was_silent) {
    link_.log().end_silence();
  }
  if (silent_ticks_ == 0) heard_at_ = now;
  // Sent even if the peer was heard. If it is silent from now on, that silence is known to have
  // lasted since the last tick.
  ping();
  return silent_ticks_;
}

void Liveness::ping() {
  const auto since = static_cast<std::uint64_t>((link_.loop()->now() - attached_at_).count());
  link_.send(wire::plain_frame({.kind = wire::FrameKind::ping, .id = kEcho | since}));
}

void Liveness::pong(std::uint64_t id) {
  if ((id & kEcho) == 0) return;
  const auto now = static_cast<std::uint64_t>((link_.loop()->now() - attached_at_).count());
  const std::uint64_t sent = id & ~kEcho;
  if (sent > now) return;
  const Duration sample(std::max<std::uint64_t>(now - sent, 1));
  const Duration before = round_trip();
  const Duration smoothed = before == Duration::zero() ? sample : before + (sample - before) / 8;
  round_trip_.store(smoothed.count(), std::memory_order_relaxed);
}

TimePoint Liveness::heard_at() const {
  return std::max(heard_at_,
                  link_.loop()->now() - (silent_ticks_ + 1) * link_.options().liveness.ping_after);
}

}  // namespace batchrpc
