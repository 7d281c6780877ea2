#include <algorithm>

#include "call/duration_text.hpp"
#include "peers/peer_table.hpp"
#include "session/log_limits.hpp"

// Connections whose peer has not identified itself, or is no member yet: limits of their number and
// age.
namespace batchrpc {
namespace {

constexpr std::ptrdiff_t kMaxHalfOpen = 64;
constexpr Duration kHandshakeTime = std::chrono::seconds(5);
// How long a node may take from its connection until it has asked the root to join.
constexpr Duration kJoinTime = std::chrono::seconds(30);
// When all places are taken, a connection that is older than this loses its place. So neither
// silent connections nor many honest peers that connect at once keep others out.
constexpr Duration kOwnTime = std::chrono::seconds(1);

}  // namespace

void PeerTable::accept(std::unique_ptr<Stream> stream) {
  const TimePoint now = environment_.loop->now();
  std::shared_ptr<Session> session;
  std::shared_ptr<Session> pushed_out;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    const auto is_accepted = [](const HalfOpen& entry) { return entry.accepted; };
    bool has_room = std::count_if(half_open_.begin(), half_open_.end(), is_accepted) < kMaxHalfOpen;
    if (!has_room) {
      const auto oldest = std::find_if(half_open_.begin(), half_open_.end(), is_accepted);
      if (now - oldest->since > kOwnTime) {
        pushed_out = std::move(oldest->session);
        half_open_.erase(oldest);
        has_room = true;
      }
    }
    if (has_room) {
      session = make_session({}, 0);
      half_open_.push_back({session, now, true});
    }
  }
  if (!session) {
    report_unidentified("refused " + stream->description() + ": " + std::to_string(kMaxHalfOpen) +
                        " connections already wait for their hello, or to join");
    return;
  }
  if (pushed_out)
    drop_half_open(pushed_out, "newer connections took its place before it had joined");
  if (!std::exchange(half_open_watched_, true)) watch_half_open(now + kHandshakeTime);
  session->start(std::move(stream), true);
}

// Has a timer of its own, because the interval of tick() is an option.
void PeerTable::watch_half_open(TimePoint when) {
  environment_.loop->schedule(when, [this, weak = std::weak_ptr(environment_.host())] {
    const auto host = weak.lock();
    if (!host) return;
    drop_half_open();
    std::optional<TimePoint> next;
    {
      const std::lock_guard lock(mutex_);
      for (const HalfOpen& entry : half_open_) {
        if (!entry.accepted) continue;
        const TimePoint end = entry.since + longest_wait(entry);
        next = next ? std::min(*next, end) : end;
      }
    }
    half_open_watched_ = next.has_value();
    if (next) watch_half_open(*next);
  });
}

Duration PeerTable::longest_wait(const HalfOpen& entry) const {
  if (!entry.accepted) return options_.liveness.dead_after;
  return entry.session->is_open() ? kJoinTime : kHandshakeTime;
}

void PeerTable::drop_half_open() {
  std::vector<std::pair<std::shared_ptr<Session>, std::string>> dropped;
  {
    const std::lock_guard lock(mutex_);
    const TimePoint now = environment_.loop->now();
    std::erase_if(half_open_, [&](const HalfOpen& entry) {
      if (now - entry.since < longest_wait(entry)) return false;
      dropped.emplace_back(entry.session,
                           entry.session->is_open() ? "it said hello, but did not join in time"
                           : entry.hello ? "the root has not introduced '" + entry.hello->name + "'"
                                         : "it sent no hello in time");
      return true;
    });
  }
  for (const auto& [session, why] : dropped)
    drop_half_open(session, why);
}

void PeerTable::drop_half_open(const std::shared_ptr<Session>& session, const std::string& why) {
  if (session->was_accepted()) {
    report_unidentified("dropped " + session->connection().description() + ": " + why);
  }
  if (session->was_accepted() && session->is_open()) return retire(session, why);
  // A session that is still connecting has no stream yet, so break_off() does nothing.
  if (!session->connection().break_off(why)) session->on_closed(why, false);
}

void PeerTable::report_unidentified(const std::string& line, LogLevel level) {
  const auto host = environment_.host();
  if (!host->log().enabled(level)) return;
  host->log_limits().no_hello.write(host->log(), level, environment_.loop->now(), line);
}

}  // namespace batchrpc
