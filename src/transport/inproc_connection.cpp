#include "transport/inproc_connection.hpp"

#include <algorithm>
#include <utility>

#include "transport/link_draws.hpp"

namespace batchrpc::detail {
namespace {

// FNV-1a.
void hash(std::uint64_t& sum, std::span<const std::byte> bytes) {
  for (const std::byte each : bytes)
    sum = (sum ^ static_cast<std::uint64_t>(each)) * 0x100000001b3;
}

std::string hex(std::uint64_t number) {
  std::string text(16, '0');
  for (auto at = text.rbegin(); number != 0; ++at, number >>= 4)
    *at = "0123456789abcdef"[number & 15];
  return text;
}

}  // namespace

InprocConnection::InprocConnection(const LinkOptions& options, std::uint64_t seed,
                                   std::uint64_t number, std::shared_ptr<const InprocTrace> trace,
                                   std::array<std::weak_ptr<Loop>, 2> loops,
                                   std::array<std::string, 2> hosts)
    : options_(options),
      immediate_(options.latency + options.jitter == Duration::zero() && options.bandwidth == 0),
      number_(number),
      trace_(std::move(trace)),
      random_(seed),
      break_at_(draw_break(options, random_)) {
  for (std::size_t i = 0; i < 2; ++i) {
    sides_[i].loop = std::move(loops[i]);
    sides_[i].host = std::move(hosts[i]);
  }
}

std::string InprocConnection::name() const {
  return "#" + std::to_string(number_) + " " + host(0) + ">" + host(1);
}

IoResult InprocConnection::read(int side, std::span<const std::span<std::byte>> buffers) {
  TraceEvents events(*trace_);
  const std::lock_guard lock(mutex_);
  Side& self = sides_[index(side)];
  IoResult result;
  if (self.shut) {
    result.end = true;
    return result;
  }
  std::size_t left = std::min(self.arrived, options_.max_chunk);
  if (options_.read_rate > 0) {
    const std::size_t in_10_ms = std::max<std::size_t>(options_.read_rate / 100, 1);
    left = reads_later(self) ? 0 : std::min(left, in_10_ms);
  }
  std::uint64_t sum = 0xcbf29ce484222325;
  for (const std::span<std::byte> buffer : buffers) {
    const std::size_t count = std::min(buffer.size(), left);
    self.inbox.pop(buffer.first(count));
    if (events.on()) hash(sum, buffer.first(count));
    result.bytes += count;
    left -= count;
  }
  self.arrived -= result.bytes;
  if (result.bytes > 0) {
    if (options_.read_rate > 0) {
      self.reads_from = now(self) + time_for(result.bytes, options_.read_rate);
    }
    if (events.on()) {
      events.add(name(), ": ", self.host, " reads ", result.bytes, " bytes, ", hex(sum));
    }
    // Not for each byte that becomes free.
    if (other(side).writable && self.inbox.size() <= options_.capacity / 2) wake(1 - side);
  } else if (self.ended && self.arrived == 0) {
    result.error = self.end_error;
    result.end = !self.end_error;
  }
  return result;
}

IoResult InprocConnection::write(int side, std::span<const std::span<const std::byte>> buffers) {
  constexpr std::size_t kMaxBuffers = 64;
  TraceEvents events(*trace_);
  const std::lock_guard lock(mutex_);
  Side& self = sides_[index(side)];
  Side& to = other(side);
  IoResult result;
  if (self.shut || self.ended) {
    result.error = self.ended && self.end_error ? self.end_error
                                                : std::make_error_code(std::errc::broken_pipe);
    return result;
  }
  const bool lost =
      to.shut || to.ending;  // the other side is gone, but this one does not know it yet
  const std::uint64_t break_at = std::min(options_.break_after, break_at_);
  std::size_t left = options_.max_chunk;
  if (!lost) {
    const std::size_t used = to.inbox.size();
    left = std::min(left, options_.capacity > used ? options_.capacity - used : 0);
    if (break_at - written_ < left) left = static_cast<std::size_t>(break_at - written_);
  }
  for (const auto buffer : buffers.first(std::min(buffers.size(), kMaxBuffers))) {
    const std::size_t count = std::min(buffer.size(), left);
    if (!lost) to.inbox.push(buffer.first(count));
    result.bytes += count;
    left -= count;
  }
  if (result.bytes == 0 || lost) return result;
  written_ += result.bytes;
  if (is_immediate(to)) {
    to.arrived += result.bytes;
    wake(1 - side);
  } else {
    const TimePoint arrival = arrival_time(to, result.bytes);
    to.under_way.push_back({arrival, result.bytes});
    schedule_arrival(1 - side, arrival);
  }
  if (written_ >= break_at) break_now(events);
  return result;
}

void InprocConnection::wait_readable(int side, Task handler) {
  Task replaced;  // destroyed after the lock
  const std::lock_guard lock(mutex_);
  replaced = std::exchange(sides_[index(side)].readable, std::move(handler));
  wake(side);
}

void InprocConnection::wait_writable(int side, Task handler) {
  Task replaced;
  const std::lock_guard lock(mutex_);
  replaced = std::exchange(sides_[index(side)].writable, std::move(handler));
  wake(side);
}

void InprocConnection::shutdown(int side) {
  TraceEvents events(*trace_);
  const std::lock_guard lock(mutex_);
  end(side, events);
}

void InprocConnection::close(int side) {
  TraceEvents events(*trace_);
  Task readable;  // destroyed after the lock
  Task writable;
  const std::lock_guard lock(mutex_);
  std::swap(readable, sides_[index(side)].readable);
  std::swap(writable, sides_[index(side)].writable);
  end(side, events);
}

void InprocConnection::end(int side, TraceEvents& events) {
  Side& self = sides_[index(side)];
  if (std::exchange(self.shut, true)) return;
  if (events.on()) events.add(name(), ": ", self.host, " closes");
  self.inbox.clear();
  self.arrived = 0;
  self.under_way.clear();
  send_end(1 - side, {});
  wake(0);
  wake(1);
}

TimePoint InprocConnection::now(const Side& side) {
  const auto loop = side.loop.lock();
  return loop ? loop->now() : TimePoint::max();
}

bool InprocConnection::reads_later(const Side& side) const {
  return options_.read_rate > 0 && now(side) < side.reads_from;
}

bool InprocConnection::is_readable(const Side& side) const {
  if (side.shut) return true;
  return side.arrived > 0 ? !reads_later(side) : side.ended;
}

TimePoint InprocConnection::arrival_time(Side& to, std::size_t bytes) {
  if (to.held) return TimePoint::max();
  const auto loop = to.loop.lock();
  if (!loop) return TimePoint::max();
  TimePoint sent = loop->now();
  if (options_.bandwidth > 0) {
    sent = to.link_free = std::max(sent, to.link_free) + time_for(bytes, options_.bandwidth);
  }
  TimePoint arrival = sent + options_.latency + draw_jitter(options_, random_);
  if (!to.under_way.empty()) arrival = std::max(arrival, to.under_way.back().arrival);
  return arrival;
}

void InprocConnection::send_end(int to, std::error_code error) {
  Side& side = sides_[index(to)];
  if (std::exchange(side.ending, true)) return;
  side.end_error = error;
  if (is_immediate(side)) {
    side.ended = true;
    wake(to);
  } else {
    side.end_arrival = arrival_time(side, 0);
    schedule_arrival(to, side.end_arrival);
  }
}

void InprocConnection::schedule_arrival(int side, TimePoint when) {
  if (when == TimePoint::max()) return;
  if (const auto loop = sides_[index(side)].loop.lock()) {
    loop->schedule(when, [weak = weak_from_this(), side] {
      if (const auto self = weak.lock()) self->arrive(side);
    });
  }
}

void InprocConnection::schedule_handlers(int side, TimePoint when) {
  if (const auto loop = sides_[index(side)].loop.lock()) {
    loop->schedule(when, [weak = weak_from_this(), side] {
      if (const auto connection = weak.lock()) connection->run_handlers(side);
    });
  }
}

void InprocConnection::wake(int side) {
  Side& self = sides_[index(side)];
  if (self.readable && self.arrived > 0 && reads_later(self)) {
    schedule_handlers(side, self.reads_from);
  }
  const bool ready = (self.readable && is_readable(self)) || (self.writable && is_writable(side));
  if (!ready) return;
  if (const auto loop = self.loop.lock()) {
    loop->post([weak = weak_from_this(), side] {
      if (const auto connection = weak.lock()) connection->run_handlers(side);
    });
  }
}

void InprocConnection::arrive(int side) {
  {
    const std::lock_guard lock(mutex_);
    Side& self = sides_[index(side)];
    const auto loop = self.loop.lock();
    if (!loop) return;
    const TimePoint now = loop->now();
    while (!self.under_way.empty() && self.under_way.front().arrival <= now) {
      self.arrived += self.under_way.front().bytes;
      self.under_way.pop_front();
    }
    if (self.ending && self.under_way.empty() && self.end_arrival <= now) self.ended = true;
  }
  run_handlers(side);
}

void InprocConnection::run_handlers(int side) {
  Task readable;
  Task writable;
  {
    const std::lock_guard lock(mutex_);
    Side& self = sides_[index(side)];
    if (is_readable(self)) std::swap(readable, self.readable);
    if (is_writable(side)) std::swap(writable, self.writable);
  }
  if (readable) readable();
  if (writable) writable();
}

}  // namespace batchrpc::detail
