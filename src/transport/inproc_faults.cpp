// Faults of a connection inside the process.
#include <algorithm>
#include <deque>
#include <utility>

#include "transport/inproc_connection.hpp"
#include "transport/link_draws.hpp"

namespace batchrpc::detail {

// Breaks at the byte written last. With break_after all written bytes arrive, with break_every a
// random part.
void InprocConnection::break_now(TraceEvents& events) {
  if (events.on()) events.add(name(), ": breaks after ", written_, " bytes");
  for (Side& side : sides_) {
    if (written_ < break_at_ || side.ending) continue;
    const std::size_t bytes = side.inbox.size() - draw_rest(side.inbox.size(), random_);
    if (bytes > 0 && events.on()) events.add(name(), ": ", side.host, " loses ", bytes, " bytes");
    lose(side, bytes);
  }
  for (const int each : {0, 1})
    send_end(each, std::make_error_code(std::errc::connection_reset));
}

// Drops the newest bytes.
void InprocConnection::lose(Side& side, std::size_t bytes) {
  side.inbox.drop_last(bytes);
  while (bytes > 0 && !side.under_way.empty()) {
    Parcel& last = side.under_way.back();
    const std::size_t count = std::min(last.bytes, bytes);
    last.bytes -= count;
    bytes -= count;
    if (last.bytes == 0) side.under_way.pop_back();
  }
  side.arrived -= bytes;
}

void InprocConnection::kill(int side) {
  const auto reset = std::make_error_code(std::errc::connection_reset);
  const std::lock_guard lock(mutex_);
  killed_ = true;
  send_end(1 - side, reset);
  Side& self = sides_[index(side)];
  self.inbox.clear();
  self.under_way.clear();
  self.arrived = 0;
  self.ending = self.ended = true;
  self.end_error = reset;
  wake(side);
}

void InprocConnection::cut() {
  TraceEvents events(*trace_);
  const std::lock_guard lock(mutex_);
  if (silent_) return;
  if (events.on()) events.add(name(), ": is cut");
  for (const int side : {0, 1}) {
    Side& self = sides_[index(side)];
    if (self.ended || self.shut) continue;
    lose(self, self.inbox.size() - self.arrived);
    self.ending = self.ended = true;
    self.end_error = std::make_error_code(std::errc::connection_reset);
    wake(side);
  }
}

void InprocConnection::silence() {
  const std::lock_guard lock(mutex_);
  if (killed_) return;  // the other side must still be notified of it
  set_held(0, true);
  set_held(1, true);
  silent_ = true;
}

void InprocConnection::hold(int side, bool held) {
  const std::lock_guard lock(mutex_);
  set_held(side, held);
}

void InprocConnection::set_held(int side, bool held) {
  Side& self = sides_[index(side)];
  if (silent_ || std::exchange(self.held, held) == held) return;
  if (held) {
    for (Parcel& parcel : self.under_way)
      parcel.arrival = TimePoint::max();
    if (self.ending && !self.ended) self.end_arrival = TimePoint::max();
    return;
  }
  std::deque<Parcel> under_way;
  under_way.swap(self.under_way);
  for (const Parcel& parcel : under_way) {
    const TimePoint arrival = arrival_time(self, parcel.bytes);
    self.under_way.push_back({arrival, parcel.bytes});
    schedule_arrival(side, arrival);
  }
  if (self.ending && !self.ended) schedule_arrival(side, self.end_arrival = arrival_time(self, 0));
}

}  // namespace batchrpc::detail
