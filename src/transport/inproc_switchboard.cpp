#include "transport/inproc_switchboard.hpp"

#include <algorithm>

namespace batchrpc::detail {
namespace {

std::pair<std::string, std::string> link(std::string_view a, std::string_view b) {
  return {std::string(std::min(a, b)), std::string(std::max(a, b))};
}

void run_after(const std::weak_ptr<Loop>& weak, Duration delay, Task task) {
  const auto loop = weak.lock();
  if (!loop) return;
  if (delay == Duration::zero()) {
    loop->post(std::move(task));
  } else {
    loop->schedule(loop->now() + delay, std::move(task));
  }
}

}  // namespace

bool InprocSwitchboard::listen(const std::shared_ptr<InprocListening>& listening) {
  TraceEvents events(*trace_);
  const std::lock_guard lock(mutex_);
  if (is_off(listening->host, listening->start)) return true;  // where nobody hears of it
  if (!listening_.emplace(listening->name, listening).second) return false;
  events.add(listening->host, " listens at ", listening->name);
  if (dark_.erase(listening->name) > 0) try_to_connect_again(events);
  return true;
}

void InprocSwitchboard::unlisten(const std::shared_ptr<InprocListening>& listening) {
  listening->closed = true;
  const std::lock_guard lock(mutex_);
  const auto found = listening_.find(listening->name);
  if (found != listening_.end() && found->second == listening) listening_.erase(found);
}

void InprocSwitchboard::connect(const std::shared_ptr<InprocConnecting>& connecting,
                                TimePoint deadline) {
  const auto loop = connecting->loop.lock();
  if (!loop) return;
  TraceEvents events(*trace_);
  const std::lock_guard lock(mutex_);
  connecting_.push_back(connecting);
  connecting->deadline = loop->schedule(deadline, [weak = weak_from_this(), connecting] {
    const auto self = weak.lock();
    if (!self) return;
    if (auto handler = self->finish(connecting)) {
      handler(nullptr, std::make_error_code(std::errc::timed_out));
    }
  });
  try_to_connect(connecting, events);
}

void InprocSwitchboard::give_up(const void* transport) {
  std::vector<Transport::ConnectHandler> given_up;  // destroyed after the lock
  const std::lock_guard lock(mutex_);
  std::erase_if(connecting_, [&](const auto& connecting) {
    if (connecting->transport != transport) return false;
    given_up.push_back(std::move(connecting->handler));
    return true;
  });
}

Transport::ConnectHandler InprocSwitchboard::finish(
    const std::shared_ptr<InprocConnecting>& connecting) {
  const std::lock_guard lock(mutex_);
  if (std::erase(connecting_, connecting) == 0) return nullptr;
  return std::move(connecting->handler);
}

bool InprocSwitchboard::is_cut(const std::string& from, const std::string& to) const {
  return isolated_.contains(from) || isolated_.contains(to) || cuts_.contains({from, to});
}

bool InprocSwitchboard::is_off(const std::string& host, std::uint64_t start) const {
  const auto found = starts_.find(host);
  return found != starts_.end() && found->second != start;
}

std::uint64_t InprocSwitchboard::starts(const std::string& host) const {
  const std::lock_guard lock(mutex_);
  const auto found = starts_.find(host);
  return found != starts_.end() ? found->second : 0;
}

LinkOptions InprocSwitchboard::options(const std::string& a, const std::string& b) const {
  const auto found = links_.find(link(a, b));
  return found != links_.end() ? found->second : all_links_;
}

void InprocSwitchboard::try_to_connect(const std::shared_ptr<InprocConnecting>& connecting,
                                       TraceEvents& events) {
  const auto found = listening_.find(connecting->name);
  const auto listening = found != listening_.end() ? found->second : nullptr;
  if (isolated_.contains(connecting->host) || is_off(connecting->host, connecting->start)) return;
  if (dark_.contains(connecting->name)) return;
  if (listening &&
      (is_cut(connecting->host, listening->host) || is_cut(listening->host, connecting->host))) {
    return;
  }

  connecting->answered = true;
  LinkOptions link_options = all_links_;
  std::unique_ptr<Stream> stream;  // none: refused, by whichever host is there
  if (listening) {
    link_options = options(connecting->host, listening->host);
    const auto connection =
        std::make_shared<InprocConnection>(link_options, random_(), ++connected_, trace_,
                                           std::array{connecting->loop, listening->loop},
                                           std::array{connecting->host, listening->host});
    events.add("#", connected_, " ", connecting->host, ">", listening->host, ": connects to ",
               connecting->name);
    if (connections_.size() >= forget_at_) forget_dead_connections();
    connections_.push_back(connection);
    stream = make_inproc_stream(connection, 0, "inproc://" + connecting->name);
    auto accepted = make_inproc_stream(connection, 1, "inproc host '" + connecting->host + "'");
    run_after(listening->loop, link_options.latency,
              [listening, accepted = std::move(accepted)]() mutable {
                if (!listening->closed) listening->handler(std::move(accepted));
              });
  }
  if (!listening) events.add(connecting->host, " is refused at ", connecting->name);
  run_after(connecting->loop, 2 * link_options.latency,
            [self = shared_from_this(), connecting, stream = std::move(stream)]() mutable {
              auto handler = self->finish(connecting);
              if (!handler) return;
              if (const auto loop = connecting->loop.lock()) loop->cancel(connecting->deadline);
              const auto error =
                  stream ? std::error_code{} : std::make_error_code(std::errc::connection_refused);
              handler(std::move(stream), error);
            });
}

void InprocSwitchboard::forget_dead_connections() {
  std::erase_if(connections_, [](const auto& weak) { return weak.expired(); });
  forget_at_ = 2 * connections_.size() + 64;
}

void InprocSwitchboard::apply_cuts(TraceEvents& events) {
  for (const auto& weak : connections_) {
    const auto connection = weak.lock();
    if (!connection) continue;
    connection->hold(0, is_cut(connection->host(1), connection->host(0)));
    connection->hold(1, is_cut(connection->host(0), connection->host(1)));
  }
  try_to_connect_again(events);
}

void InprocSwitchboard::try_to_connect_again(TraceEvents& events) {
  for (const auto& connecting : connecting_) {
    if (!connecting->answered) try_to_connect(connecting, events);
  }
}

void InprocSwitchboard::set_link(const LinkOptions& options) {
  const std::lock_guard lock(mutex_);
  all_links_ = options;
}

void InprocSwitchboard::set_link(std::string_view a, std::string_view b,
                                 const LinkOptions& options) {
  const std::lock_guard lock(mutex_);
  links_[link(a, b)] = options;
}

void InprocSwitchboard::partition(std::string_view a, std::string_view b) {
  TraceEvents events(*trace_);
  const std::lock_guard lock(mutex_);
  events.add("partition between ", a, " and ", b);
  cuts_.emplace(a, b);
  cuts_.emplace(b, a);
  apply_cuts(events);
}

void InprocSwitchboard::partition_one_way(std::string_view from, std::string_view to) {
  TraceEvents events(*trace_);
  const std::lock_guard lock(mutex_);
  events.add("partition from ", from, " to ", to);
  cuts_.emplace(from, to);
  apply_cuts(events);
}

void InprocSwitchboard::heal(std::string_view a, std::string_view b) {
  TraceEvents events(*trace_);
  const std::lock_guard lock(mutex_);
  events.add("heal between ", a, " and ", b);
  cuts_.erase({std::string(a), std::string(b)});
  cuts_.erase({std::string(b), std::string(a)});
  apply_cuts(events);
}

void InprocSwitchboard::set_isolated(std::string_view host, bool isolated) {
  TraceEvents events(*trace_);
  const std::lock_guard lock(mutex_);
  events.add(isolated ? "isolate " : "rejoin ", host);
  isolated ? void(isolated_.emplace(host)) : void(isolated_.erase(std::string(host)));
  apply_cuts(events);
}

void InprocSwitchboard::cut(std::string_view a, std::string_view b) {
  std::vector<std::shared_ptr<InprocConnection>> cut;
  {
    TraceEvents events(*trace_);
    const std::lock_guard lock(mutex_);
    events.add("cut between ", a, " and ", b);
    for (const auto& weak : connections_) {
      auto connection = weak.lock();
      if (connection && link(connection->host(0), connection->host(1)) == link(a, b)) {
        cut.push_back(std::move(connection));
      }
    }
  }
  for (const auto& connection : cut)
    connection->cut();
}

void InprocSwitchboard::power_off(std::string_view host) {
  TraceEvents events(*trace_);
  const std::lock_guard lock(mutex_);
  events.add("power off ", host);
  ++starts_[std::string(host)];
  for (auto at = listening_.begin(); at != listening_.end();) {
    const bool off = at->second->host == host;
    if (off) {
      at->second->closed = true;
      dark_.insert(at->first);
    }
    at = off ? listening_.erase(at) : std::next(at);
  }
  for (const auto& weak : connections_) {
    const auto connection = weak.lock();
    if (!connection) continue;
    if (connection->host(0) == host || connection->host(1) == host) connection->silence();
  }
}

void InprocSwitchboard::kill(std::string_view host) {
  TraceEvents events(*trace_);
  const std::lock_guard lock(mutex_);
  events.add("kill ", host);
  for (auto at = listening_.begin(); at != listening_.end();) {
    const bool killed = at->second->host == host;
    if (killed) at->second->closed = true;
    at = killed ? listening_.erase(at) : std::next(at);
  }
  for (const auto& weak : connections_) {
    const auto connection = weak.lock();
    if (!connection) continue;
    for (const int side : {0, 1}) {
      if (connection->host(side) == host) connection->kill(side);
    }
  }
}

std::size_t InprocSwitchboard::connections() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(std::count_if(connections_.begin(), connections_.end(),
                                                [](const auto& weak) { return !weak.expired(); }));
}

}  // namespace batchrpc::detail
