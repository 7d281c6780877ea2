#include "transport/inproc_connection.hpp"

#include <algorithm>
#include <utility>

namespace batchrpc::detail {

InprocConnection::InprocConnection(const LinkOptions& options, std::uint64_t seed,
                                   std::array<std::weak_ptr<Loop>, 2> loops,
                                   std::array<std::string, 2> hosts)
    : options_(options), random_(seed) {
  for (std::size_t i = 0; i < 2; ++i) {
    sides_[i].loop = std::move(loops[i]);
    sides_[i].host = std::move(hosts[i]);
  }
}

IoResult InprocConnection::read(int side, std::span<const std::span<std::byte>> buffers) {
  const std::lock_guard lock(mutex_);
  Side& self = sides_[index(side)];
  IoResult result;
  if (self.shut) {
    result.end = true;
    return result;
  }
  std::size_t left = std::min(self.arrived, options_.max_chunk);
  for (const std::span<std::byte> buffer : buffers) {
    const std::size_t count = std::min(buffer.size(), left);
    self.inbox.pop(buffer.first(count));
    result.bytes += count;
    left -= count;
  }
  self.arrived -= result.bytes;
  if (result.bytes > 0) {
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
  std::size_t left = options_.max_chunk;
  if (!lost) {
    const std::size_t used = to.inbox.size();
    left = std::min(left, options_.capacity > used ? options_.capacity - used : 0);
    if (options_.break_after - written_ < left) {
      left = static_cast<std::size_t>(options_.break_after - written_);
    }
  }
  for (const auto buffer : buffers.first(std::min(buffers.size(), kMaxBuffers))) {
    const std::size_t count = std::min(buffer.size(), left);
    if (!lost) to.inbox.push(buffer.first(count));
    result.bytes += count;
    left -= count;
  }
  if (result.bytes == 0) return result;
  written_ += result.bytes;
  if (!lost) {
    if (!held_ && to.under_way.empty() && options_.latency + options_.jitter == Duration::zero()) {
      to.arrived += result.bytes;
      wake(1 - side);
    } else {
      const TimePoint arrival = arrival_time(to);
      to.under_way.push_back({arrival, result.bytes});
      schedule_arrival(1 - side, arrival);
    }
  }
  if (written_ >= options_.break_after) {
    for (const int each : {0, 1})
      send_end(each, std::make_error_code(std::errc::connection_reset));
  }
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
  const std::lock_guard lock(mutex_);
  end(side);
}

void InprocConnection::close(int side) {
  Task readable;  // destroyed after the lock
  Task writable;
  const std::lock_guard lock(mutex_);
  std::swap(readable, sides_[index(side)].readable);
  std::swap(writable, sides_[index(side)].writable);
  end(side);
}

void InprocConnection::end(int side) {
  Side& self = sides_[index(side)];
  if (std::exchange(self.shut, true)) return;
  self.inbox.clear();
  self.arrived = 0;
  self.under_way.clear();
  send_end(1 - side, {});
  wake(0);
  wake(1);
}

void InprocConnection::kill(int side) {
  const auto reset = std::make_error_code(std::errc::connection_reset);
  const std::lock_guard lock(mutex_);
  send_end(1 - side, reset);
  Side& self = sides_[index(side)];
  self.inbox.clear();
  self.under_way.clear();
  self.arrived = 0;
  self.ending = self.ended = true;
  self.end_error = reset;
  wake(side);
}

void InprocConnection::hold(bool held) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(held_, held) == held) return;
  for (const int side : {0, 1}) {
    Side& self = sides_[index(side)];
    if (held) {
      for (Parcel& parcel : self.under_way)
        parcel.arrival = TimePoint::max();
      if (self.ending && !self.ended) self.end_arrival = TimePoint::max();
      continue;
    }
    std::deque<Parcel> under_way;
    under_way.swap(self.under_way);
    for (const Parcel& parcel : under_way) {
      const TimePoint arrival = arrival_time(self);
      self.under_way.push_back({arrival, parcel.bytes});
      schedule_arrival(side, arrival);
    }
    if (self.ending && !self.ended) schedule_arrival(side, self.end_arrival = arrival_time(self));
  }
}

TimePoint InprocConnection::arrival_time(Side& to) {
  if (held_) return TimePoint::max();
  const auto loop = to.loop.lock();
  if (!loop) return TimePoint::max();
  TimePoint arrival = loop->now() + options_.latency;
  if (options_.jitter > Duration::zero()) {
    arrival +=
        Duration(std::uniform_int_distribution<Duration::rep>(0, options_.jitter.count())(random_));
  }
  if (!to.under_way.empty()) arrival = std::max(arrival, to.under_way.back().arrival);
  return arrival;
}

void InprocConnection::send_end(int to, std::error_code error) {
  Side& side = sides_[index(to)];
  if (std::exchange(side.ending, true)) return;
  side.end_error = error;
  if (!held_ && side.under_way.empty() && options_.latency + options_.jitter == Duration::zero()) {
    side.ended = true;
    wake(to);
  } else {
    side.end_arrival = arrival_time(side);
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

void InprocConnection::wake(int side) {
  Side& self = sides_[index(side)];
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

namespace {

class InprocStream final : public Stream {
 public:
  InprocStream(std::shared_ptr<InprocConnection> connection, int side, std::string description)
      : connection_(std::move(connection)), side_(side), description_(std::move(description)) {}
  ~InprocStream() override { connection_->close(side_); }

  IoResult try_read(std::span<const std::span<std::byte>> buffers) noexcept override {
    return connection_->read(side_, buffers);
  }
  IoResult try_write(std::span<const std::span<const std::byte>> buffers) noexcept override {
    return connection_->write(side_, buffers);
  }
  void wait_readable(Task handler) override {
    connection_->wait_readable(side_, std::move(handler));
  }
  void wait_writable(Task handler) override {
    connection_->wait_writable(side_, std::move(handler));
  }
  void shutdown() noexcept override { connection_->shutdown(side_); }
  [[nodiscard]] std::string description() const override { return description_; }
  [[nodiscard]] Address local_address() const override {
    const std::string& host = connection_->host(side_);
    return Address::parse("inproc://" + (host.empty() ? "-" : host));
  }

 private:
  const std::shared_ptr<InprocConnection> connection_;
  const int side_;
  const std::string description_;
};

}  // namespace

std::unique_ptr<Stream> make_inproc_stream(std::shared_ptr<InprocConnection> connection, int side,
                                           std::string description) {
  return std::make_unique<InprocStream>(std::move(connection), side, std::move(description));
}

}  // namespace batchrpc::detail
